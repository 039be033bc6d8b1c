# What `cmake --install` puts where: headers, libraries and the config package for users of the C++ interface, holt into
# bin, the programs that it starts into libexec/holt, manual pages and completions into share. find_package(holt) then gives holt::holt.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(installed)
foreach(module base protocol image machine messages models workspace agent harness)
  if(TARGET holt_${module})
    set_target_properties(holt_${module} PROPERTIES EXPORT_NAME ${module})
    list(APPEND installed holt_${module})
  endif()
endforeach()
add_library(holt_all INTERFACE)
add_library(holt::holt ALIAS holt_all)
set_target_properties(holt_all PROPERTIES EXPORT_NAME holt)
target_link_libraries(holt_all INTERFACE ${installed})
target_compile_features(holt_all INTERFACE cxx_std_23)

install(TARGETS ${installed} holt_all EXPORT holt_targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT holt_targets NAMESPACE holt:: FILE holtTargets.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/holt)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/holt" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/holtConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/holtConfig.cmake" INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/holt)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/holtConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/holtConfig.cmake" "${PROJECT_BINARY_DIR}/holtConfigVersion.cmake"
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/holt)

if(TARGET holt)
  install(TARGETS holt RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  get_target_property(pages holt_pages HOLT_PAGES)
  install(DIRECTORY "${pages}/man1" DESTINATION ${CMAKE_INSTALL_MANDIR})
  install(FILES "${pages}/bash" DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME holt)
  install(FILES "${pages}/zsh" DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions RENAME _holt)
  install(FILES "${pages}/fish" DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d RENAME holt.fish)
endif()
foreach(program holt-monitor holt-guest holt-prepare)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/holt)
  endif()
endforeach()
if(TARGET holt-memro)
  install(TARGETS holt-memro LIBRARY DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/holt)
endif()

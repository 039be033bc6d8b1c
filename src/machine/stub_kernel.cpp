#include "machine/stub_kernel.hpp"

#include <cstdint>
#include <cstring>
#include <elf.h>

namespace holt::machine {
namespace {

constexpr std::uint32_t k_load_address = 0x100000;
constexpr std::uint32_t k_note_type = 18;  // XEN_ELFNOTE_PHYS32_ENTRY of Xen's elfnote.h

template <class T>
void put(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// 32-bit protected mode: each byte of the sign goes to COM1's data port, then the CPU halts for good.
std::string code() {
  std::string out("\x66\xba\xf8\x03", 4);  // mov dx, 0x3f8
  for (char c : k_stub_sign) {
    out += '\xb0';  // mov al, c
    out += c;
    out += '\xee';  // out dx, al
  }
  return out + std::string("\xf4\xeb\xfd", 3);  // hlt; jmp back to it
}

std::string note() {
  std::string out;
  put<std::uint32_t>(out, 4);  // size of the name
  put<std::uint32_t>(out, 4);  // size of the entry address
  put<std::uint32_t>(out, k_note_type);
  out.append("Xen\0", 4);
  put<std::uint32_t>(out, k_load_address);
  return out;
}

}  // namespace

std::string stub_kernel() {
  const std::string program = code();
  const std::string entry_note = note();
  const std::uint32_t program_at = sizeof(Elf32_Ehdr) + 2 * sizeof(Elf32_Phdr);
  const auto program_size = static_cast<std::uint32_t>(program.size());
  const auto note_at = program_at + program_size;

  Elf32_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS32;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_EXEC;
  header.e_machine = EM_386;
  header.e_version = EV_CURRENT;
  header.e_entry = k_load_address;
  header.e_phoff = sizeof header;
  header.e_ehsize = sizeof header;
  header.e_phentsize = sizeof(Elf32_Phdr);
  header.e_phnum = 2;

  Elf32_Phdr load{};
  load.p_type = PT_LOAD;
  load.p_offset = program_at;
  load.p_vaddr = load.p_paddr = k_load_address;
  load.p_filesz = load.p_memsz = program_size;
  load.p_flags = PF_R | PF_X;

  Elf32_Phdr notes{};
  notes.p_type = PT_NOTE;
  notes.p_offset = note_at;
  notes.p_filesz = notes.p_memsz = static_cast<std::uint32_t>(entry_note.size());
  notes.p_align = 4;

  std::string out;
  put(out, header);
  put(out, load);
  put(out, notes);
  return out + program + entry_note;
}

}  // namespace holt::machine

// The time of one command from C++, for bench/python/machines.py to compare with.
//
//   holt_bench_exec_latency MACHINE [TIMES]
//
// Runs `true` in a running machine and prints each time in milliseconds, one a line. One unmeasured run comes
// first.
#include "holt/machine/machine.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>

namespace {

void measure(const holt::Machine& machine, int times) {
  machine.exec({"true"});
  for (int i = 0; i < times; ++i) {
    auto begin = std::chrono::steady_clock::now();
    machine.exec({"true"});
    std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    std::printf("%.3f\n", took.count());
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: holt_bench_exec_latency MACHINE [TIMES]\n");
    return 2;
  }
  try {
    measure(holt::Machine::open(argv[1]), argc > 2 ? std::atoi(argv[2]) : 50);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "holt_bench_exec_latency: %s\n", error.what());
    return 1;
  }
}

// How fast machines are, as a table with the bars of docs/benchmarks.md and two things to compare with: a
// cold boot, and files moved through shell commands of 64 KiB.
//
//   build/release/bench/holt_bench_machines [PATH_OF_HOLT]
//
// Needs a prepared home (scripts/setup). Machines and a second template live in a temporary folder.
#include "holt/base/encoding.hpp"
#include "holt/base/files.hpp"
#include "holt/base/ids.hpp"
#include "holt/base/process.hpp"
#include "holt/machine/availability.hpp"
#include "holt/machine/machine.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

namespace {

using namespace holt;
namespace fs = std::filesystem;

constexpr std::size_t k_big = std::size_t{64} << 20;
constexpr std::size_t k_shell_piece = std::size_t{64} << 10;
constexpr int k_shell_pieces = 16;
constexpr int k_small_files = 1000;
constexpr int k_machines = 20;

double seconds_of(const std::function<void()>& work) {
  auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double middle(std::vector<double> all) {
  auto at = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::ranges::nth_element(all, at);
  return *at;
}

double median_of(int times, const std::function<void()>& work) {
  std::vector<double> all;
  for (int i = 0; i < times; ++i) all.push_back(seconds_of(work));
  return middle(std::move(all));
}

void expect(bool holds, const char* what) {
  if (!holds) throw Error(ErrorCode::internal, fmt::format("The benchmark expected that {}", what));
}

void print_row(const std::string& what, const std::string& measured, const std::string& bar, bool met) {
  fmt::print("| {:<58} | {:>34} | {:>24} | {:<6} |\n", what, measured, bar, met ? "met" : "missed");
  std::fflush(stdout);
}

/// A home of its own: data (engine, images) and templates of the real one, machines in a temporary folder.
struct Home {
  TempDir folder;
  HostConfig host = HostConfig::from_environment();

  Home() {
    fs::create_directory_symlink(host.directories.data, folder.path() / "data");
    fs::create_directories(host.directories.cache);
    fs::create_directory_symlink(host.directories.cache, folder.path() / "cache");
    host.directories = Directories::below(folder.path());
  }
};

class Bench {
 public:
  explicit Bench(fs::path holt) : holt_(std::move(holt)) {
    kvm_ = choose_accelerator(home_.host) == Accelerator::kvm;
  }

  void run() {
    double load = 0;
    ::getloadavg(&load, 1);
    fmt::print("{} CPUs, accelerator {}, load before {:.1f}\n\n", std::thread::hardware_concurrency(),
               kvm_ ? "kvm" : "tcg", load);
    fmt::print("| {:<58} | {:>34} | {:>24} | {:<6} |\n|---|---|---|---|\n", "what", "measured", "bar", "");
    runs();
    auto machine = Machine::create({.lifetime = Lifetime::ephemeral}, {}, home_.host);
    second_exec(machine);
    big_file(machine);
    small_files(machine);
    stop_and_start();
    suspend_and_resume();
    many_machines();
  }

 private:
  void holt_run(const fs::path& home, std::vector<std::string> flags) const {
    std::vector<std::string> argv{holt_.string(), "--quiet", "run"};
    argv.insert(argv.end(), flags.begin(), flags.end());
    argv.insert(argv.end(), {"--", "/bin/true"});
    const char* path = std::getenv("PATH");
    ProcessSpec spec{.argv = argv,
                     .env = {{"HOLT_HOME", home.string()}, {"PATH", path != nullptr ? path : ""}}};
    spec.env["HOLT_ACCELERATOR"] = kvm_ ? "kvm" : "tcg";
    auto result = run_process(spec, {.deadline = Deadline::after(std::chrono::minutes(3))});
    expect(result.status.exit_code == 0, "holt run succeeds");
  }

  void runs() {
    holt_run(home_.folder.path(), {});
    double warm = median_of(9, [&] { holt_run(home_.folder.path(), {}); });
    TempDir cold_home;
    fs::create_directory_symlink(home_.host.directories.data, cold_home.path() / "data");
    double cold = seconds_of([&] { holt_run(cold_home.path(), {}); });
    double bar = kvm_ ? 0.150 : 0.450;
    print_row("holt run /bin/true, process start to exit", fmt::format("{:.0f} ms", warm * 1e3),
              fmt::format("<= {:.0f} ms", bar * 1e3), warm <= bar);
    print_row("  the same with a cold boot first (template made, once)",
              fmt::format("{:.1f} s, ratio {:.0f}", cold, cold / warm), "-", true);
  }

  void second_exec(const Machine& machine) {
    machine.exec({"/bin/true"});
    double took = median_of(50, [&] { expect(machine.exec({"/bin/true"}).success(), "true succeeds"); });
    double bar = kvm_ ? 0.003 : 0.020;
    print_row("exec of /bin/true in a running machine", fmt::format("{:.1f} ms", took * 1e3),
              fmt::format("<= {:.0f} ms", bar * 1e3), took <= bar);
  }

  void big_file(const Machine& machine) {
    std::string bytes = random_bytes(k_big);
    double in = median_of(3, [&] {
      auto writer = machine.open_write("/root/big", {.size = k_big});
      for (std::size_t at = 0; at < k_big; at += std::size_t{256} << 10) {
        writer.write(std::string_view(bytes).substr(at, std::size_t{256} << 10));
      }
      writer.finish();
    });
    std::string back;
    double out = median_of(3, [&] {
      back.clear();
      auto reader = machine.open_read("/root/big");
      while (auto piece = reader.next()) back += *piece;
    });
    expect(back == bytes, "the file comes back as it went in");
    double mib = static_cast<double>(k_big) / 1e6;
    file_row("64 MiB file into the machine", mib / in, shell_in(machine, bytes));
    file_row("64 MiB file out of the machine", mib / out, shell_out(machine, bytes));
  }

  static void file_row(const std::string& what, double rate, double shell_rate) {
    double ratio = rate / shell_rate;
    print_row(what, fmt::format("{:.0f} MB/s, {:.0f} x shell ({:.2f})", rate, ratio, shell_rate),
              ">= 80 MB/s, >= 20 x shell", rate >= 80 && ratio >= 20);
  }

  /// MB/s of the same through commands that carry 64 KiB each in their text.
  static double shell_in(const Machine& machine, const std::string& bytes) {
    double took = seconds_of([&] {
      for (int i = 0; i < k_shell_pieces; ++i) {
        auto piece =
            std::string_view(bytes).substr(static_cast<std::size_t>(i) * k_shell_piece, k_shell_piece);
        auto text = base64_encode(piece, Base64Alphabet::standard);
        expect(machine.exec_shell("printf %s '" + text + "' | base64 -d >> /root/shell").success(),
               "printf works");
      }
    });
    return k_shell_pieces * static_cast<double>(k_shell_piece) / 1e6 / took;
  }

  static double shell_out(const Machine& machine, const std::string& bytes) {
    std::string back;
    double took = seconds_of([&] {
      for (int i = 0; i < k_shell_pieces; ++i) {
        auto result = machine.exec_shell(
            fmt::format("dd if=/root/big bs=65536 skip={} count=1 2>/dev/null | base64 -w0", i));
        back += base64_decode(result.out).value_or("");
      }
    });
    expect(back == bytes.substr(0, back.size()) && !back.empty(), "dd gives the file's bytes");
    return k_shell_pieces * static_cast<double>(k_shell_piece) / 1e6 / took;
  }

  void small_files(const Machine& machine) {
    auto tree = home_.folder.path() / "tree";
    fs::create_directory(tree);
    for (int i = 0; i < k_small_files; ++i)
      std::ofstream(tree / fmt::format("file-{:04}", i)) << random_bytes(4096);
    int round = 0;
    double in = median_of(3, [&] { machine.copy_in(tree, fmt::format("/root/tree-{}", round++)); });
    round = 0;
    double out = median_of(
        3, [&] { machine.copy_out("/root/tree-0", home_.folder.path() / fmt::format("back-{}", round++)); });
    print_row("1,000 files of 4 KiB into the machine", fmt::format("{:.0f} files/s", k_small_files / in),
              ">= 700 files/s", k_small_files / in >= 700);
    print_row("1,000 files of 4 KiB out of the machine", fmt::format("{:.0f} files/s", k_small_files / out),
              ">= 2000 files/s", k_small_files / out >= 2000);
  }

  void stop_and_start() {
    auto machine = Machine::create({.name = "bench-stop"}, {}, home_.host);
    int round = 0;
    double took = median_of(5, [&] {
      machine.write_file("/root/round", std::to_string(++round));
      machine.stop();
      machine.start();
      expect(machine.read_file("/root/round") == std::to_string(round), "nothing is lost");
    });
    machine.remove({.mode = RemoveMode::force});
    print_row("stop and start, with a file written before and read after",
              fmt::format("{:.0f} ms", took * 1e3), "<= 600 ms", took <= 0.6);
  }

  void suspend_and_resume() {
    auto machine = Machine::create({.name = "bench-suspend"}, {}, home_.host);
    machine.exec_shell("head -c 104857600 /dev/urandom > /dev/shm/used");
    std::vector<double> saves;
    std::vector<double> resumes;
    for (int i = 0; i < 5; ++i) {
      saves.push_back(seconds_of([&] { machine.suspend(); }));
      resumes.push_back(seconds_of([&] {
        machine.resume();
        expect(machine.exec({"true"}).success(), "a resumed machine answers");
      }));
    }
    machine.remove({.mode = RemoveMode::force});
    print_row("suspend, 1 GiB with 100 MiB of random data", fmt::format("{:.0f} ms", middle(saves) * 1e3),
              "<= 1500 ms", middle(saves) <= 1.5);
    print_row("resume of it, to the first answer", fmt::format("{:.0f} ms", middle(resumes) * 1e3),
              "<= 600 ms", middle(resumes) <= 0.6);
  }

  void many_machines() {
    std::atomic<int> good = 0;
    double took = seconds_of([&] {
      std::vector<std::jthread> threads;
      for (int i = 0; i < k_machines; ++i) {
        threads.emplace_back([&, i] {
          try {
            auto machine = Machine::create({.name = fmt::format("bench-{}", i)}, {}, home_.host);
            auto text = machine.exec({"/bin/echo", std::to_string(i)}).out;
            machine.remove({.mode = RemoveMode::force});
            if (text == std::to_string(i) + "\n") ++good;
          } catch (const Error& error) {
            fmt::print(stderr, "machine {}: {}\n", i, error.what());
          }
        });
      }
    });
    auto left = Machine::list_all(home_.host);
    std::erase_if(left, [](const MachineInfo& info) { return !info.name.starts_with("bench-"); });
    print_row("20 machines made, used and deleted at once",
              fmt::format("{} good, {} left, {:.1f} s", good.load(), left.size(), took), "20 good, 0 left",
              good == k_machines && left.empty());
  }

  fs::path holt_;
  Home home_;
  bool kvm_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  try {
    Bench(argc > 1 ? argv[1] : HOLT_PROGRAM).run();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "holt_bench_machines: %s\n", error.what());
    return 1;
  }
}

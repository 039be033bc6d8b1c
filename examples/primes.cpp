// An agent writes a script in a microVM, runs it, and goes on in the same machine in a second run.
//
//   HOLT_MODEL=anthropic:claude-opus-5-5 ANTHROPIC_API_KEY=... build/examples/primes
//
// HOLT_MODEL names the model, ANTHROPIC_BASE_URL another server that speaks its API (scripts/demo starts one
// that replays examples/primes.replay.jsonl).
#include "holt/agent/agent.hpp"
#include "holt/harness/coder.hpp"
#include "holt/harness/smol_sandbox.hpp"

#include <cstdlib>
#include <iostream>
#include <string>

namespace {

std::string model_id() {
  const char* id = std::getenv("HOLT_MODEL");
  return id != nullptr && *id != '\0' ? id : "anthropic:claude-opus-5-5";
}

void run() {
  using namespace holt;
  Agent agent(model_id(), {.capabilities = {SmolSandbox(), Coder()}});

  auto result = agent.run_sync("Write a script that prints the first 10 primes, and run it.");
  auto ref = result.workspace().ref();
  std::cout << result.output() << "\n";

  auto again = agent.run_sync("Now make it print the first 100.", {.message_history = result.all_messages()});
  std::cout << again.output() << "\n";
  std::cout << "machine of both runs: " << (ref == again.workspace().ref() ? ref->id : "not the same")
            << "\n";

  SmolSandbox().destroy(*ref);
}

}  // namespace

int main() {
  try {
    run();
    return 0;
  } catch (const holt::Error& error) {
    std::cerr << "primes: " << error.what() << "\n";
    if (!error.hint().empty()) std::cerr << "primes: hint: " << error.hint() << "\n";
    return 1;
  }
}

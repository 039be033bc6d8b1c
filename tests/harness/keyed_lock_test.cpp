#include "harness/keyed_lock.hpp"

#include "holt/base/error.hpp"

#include <chrono>
#include <vector>

#include <boost/asio.hpp>
#include <gtest/gtest.h>

namespace holt {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

/// Takes the turn, notes its number twice with a pause between.
Task<void> note_twice(KeyedLocks& locks, std::string key, int number, std::vector<int>& notes) {
  auto turn = co_await locks.lock(std::move(key));
  notes.push_back(number);
  co_await sleep_for(1ms);
  notes.push_back(number);
}

TEST(KeyedLocks, TurnsOfOneKeyDoNotOverlapAndComeInOrder) {
  KeyedLocks locks;
  std::vector<int> notes;
  asio::io_context loop;
  for (int i = 0; i < 3; ++i) asio::co_spawn(loop, note_twice(locks, "key", i, notes), asio::detached);
  loop.run();
  EXPECT_EQ(notes, (std::vector<int>{0, 0, 1, 1, 2, 2}));
}

TEST(KeyedLocks, OtherKeysDoNotWait) {
  KeyedLocks locks;
  std::vector<int> notes;
  asio::io_context loop;
  asio::co_spawn(loop, note_twice(locks, "a", 0, notes), asio::detached);
  asio::co_spawn(loop, note_twice(locks, "b", 1, notes), asio::detached);
  loop.run();
  EXPECT_EQ(notes[0] + notes[1], 1) << "both have begun before one ends";
}

TEST(KeyedLocks, CancelledWaiterLeavesTheQueue) {
  KeyedLocks locks;
  std::vector<int> notes;
  asio::io_context loop;
  asio::cancellation_signal signal;
  std::exception_ptr failure;
  asio::co_spawn(loop, note_twice(locks, "key", 0, notes), asio::detached);
  asio::co_spawn(loop, note_twice(locks, "key", 1, notes),
                 asio::bind_cancellation_slot(signal.slot(), [&](std::exception_ptr e) { failure = e; }));
  asio::co_spawn(loop, note_twice(locks, "key", 2, notes), asio::detached);
  asio::post(loop, [&] { signal.emit(asio::cancellation_type::terminal); });
  loop.run();
  EXPECT_TRUE(failure) << "the cancelled one must hear of it";
  EXPECT_EQ(notes, (std::vector<int>{0, 0, 2, 2}));
}

TEST(KeyedLocks, WaitersOnOtherThreadsGetTheirTurn) {
  KeyedLocks locks;
  std::vector<int> notes;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&, i] { sync_wait(note_twice(locks, "key", i, notes)); });
  for (auto& thread : threads) thread.join();
  ASSERT_EQ(notes.size(), 8U);
  for (std::size_t i = 0; i < 8; i += 2) EXPECT_EQ(notes[i], notes[i + 1]);
}

}  // namespace
}  // namespace holt

// A client and a monitor of different versions, case FRONT-28: both are told, nothing is taken for something
// else.
#include "machine/fake_guest.hpp"
#include "machine/socket_address.hpp"
#include "machine/stream_connection.hpp"

#include <thread>

#include <gtest/gtest.h>

namespace holt::test {
namespace {

using namespace machine;
using namespace protocol;

std::string greeting(std::uint32_t version) {
  std::string wire;
  FrameWriter().append(wire, {.type = FrameType::hello}, encode(Hello{.version = version}));
  return wire;
}

TEST(Versions, FRONT_28_AClientOfAnotherVersionIsToldTheMonitorsAndLetGo) {
  FakeMachine fake([](GuestVoice&, const Frame&) {});
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  SocketAddress address(fake.folder());
  ASSERT_EQ(::connect(socket.get(), address.get(), address.size()), 0);
  write_all(socket.get(), greeting(k_version + 1));
  FrameParser parser(Side::server);
  std::vector<Frame> frames;
  for (ssize_t n = 1; n > 0;) {
    auto room = parser.space();
    n = ::recv(socket.get(), room.data(), room.size(), 0);
    ASSERT_TRUE(parser.commit(static_cast<std::size_t>(std::max<ssize_t>(n, 0))));
    while (auto frame = parser.next()) frames.push_back(std::move(*frame));
  }
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(decode<Hello>(frames[0].payload)->version, k_version);
  EXPECT_EQ(fake.seen(), std::vector<FrameType>()) << "the guest has heard of it";
}

/// Answers each client with a greeting of its own version, as the monitor of another holt does.
class OtherMonitor {
 public:
  OtherMonitor() : folder_(dir_.path() / "dev") {
    make_private_directory(folder_.path());
    listener_ = monitor::listen_in(folder_);
    thread_ = std::thread([this] { serve(); });
  }
  ~OtherMonitor() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  OtherMonitor(const OtherMonitor&) = delete;
  OtherMonitor& operator=(const OtherMonitor&) = delete;

  const MachineFolder& folder() const { return folder_; }

 private:
  void serve() {
    pollfd wait{.fd = listener_.get(), .events = POLLIN, .revents = 0};
    while (::poll(&wait, 1, -1) == 1 && (wait.revents & POLLHUP) == 0) {
      Fd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!client) return;
      char bytes[4096];
      if (::recv(client.get(), bytes, sizeof bytes, 0) > 0) write_all(client.get(), greeting(k_version + 1));
    }
  }

  TempDir dir_;
  MachineFolder folder_;
  Fd listener_;
  std::thread thread_;
};

TEST(Versions, FRONT_28_AMonitorOfAnotherVersionIsNamedWithBothVersionsAndARemedy) {
  OtherMonitor other;
  auto [code, text] = failure([&] {
    Wait wait{.deadline = patient()};
    StreamConnection::open(other.folder(), StatusRequest{}, Effect::possible, wait)->reply(wait);
  });
  EXPECT_EQ(code, ErrorCode::not_supported);
  for (const auto& part :
       {std::to_string(k_version), std::to_string(k_version + 1), std::string("holt stop --kill dev")})
    EXPECT_NE(text.find(part), std::string::npos) << text;
}

}  // namespace
}  // namespace holt::test

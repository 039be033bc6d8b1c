#include "holt/base/error.hpp"
#include "holt/replay/replay_server.hpp"

#include <charconv>
#include <csignal>
#include <ostream>

#include <boost/asio.hpp>
#include <fmt/format.h>

namespace holt {
namespace {

struct Address {
  std::string host;
  unsigned short port = 0;
};

Address parse_listen(const std::string& text) {
  auto colon = text.rfind(':');
  Address address;
  bool good = colon != std::string::npos && colon > 0;
  if (good) {
    address.host = text.substr(0, colon);
    if (address.host.starts_with('[') && address.host.ends_with(']')) {
      address.host = address.host.substr(1, address.host.size() - 2);
    }
    const char* begin = text.data() + colon + 1;
    const char* end = text.data() + text.size();
    auto [stop, error] = std::from_chars(begin, end, address.port);
    good = error == std::errc() && stop == end;
  }
  if (!good) {
    throw Error(ErrorCode::usage,
                fmt::format("'{}' is no address to listen on; write 127.0.0.1:PORT", printable(text, 100)));
  }
  return address;
}

}  // namespace

int run_replay(const ReplayCommand& command, std::ostream& out, std::ostream& err) {
  auto address = parse_listen(command.listen);
  auto script = ReplayScript::load(command.script);
  bool nothing_to_do = script.entries.empty() && command.end == ReplayEnd::when_done;

  boost::asio::io_context loop(1);
  boost::asio::signal_set signals(loop, SIGTERM, SIGINT);
  signals.async_wait([&](boost::system::error_code error, int) {
    if (!error) loop.stop();
  });
  ReplayOptions options{.host = address.host, .port = address.port};
  options.on_misfit = [&](const std::string& sentence) {
    boost::asio::post(loop, [&err, sentence] { err << "replay: " << sentence << std::endl; });
  };
  if (command.end == ReplayEnd::when_done) {
    options.on_all_used = [&] { boost::asio::post(loop, [&] { loop.stop(); }); };
  }
  ReplayServer server(std::move(script), std::move(options));
  out << server.url() << std::endl;
  if (!nothing_to_do) loop.run();

  auto report = server.stop();
  // Sentences that were posted while the loop was already ending.
  loop.restart();
  loop.poll();
  for (auto line : report.unused) err << "replay: the entry in line " << line << " was not used" << std::endl;
  return report.ok() ? 0 : 1;
}

}  // namespace holt

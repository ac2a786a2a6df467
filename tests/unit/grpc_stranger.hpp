// SPDX-License-Identifier: Apache-2.0
// A stranger that speaks gRPC: one end of a link that sends what a test specifies.
#pragma once

#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/net/grpc/config.hpp"
#include "core/net/grpc/grpc_config.hpp"
#include "core/net/grpc/link.hpp"
#include "tests/unit/grpc_support.hpp"

namespace dist::grpc_link {

struct Stranger final : LinkUser {
  // `secret` is for the token with which the connection begins.
  Stranger(const GrpcWorkers& workers, int worker, const char* secret = "")
      : Stranger(workers.address(worker), secret) {}
  Stranger(const std::string& address, const char* secret) {
    Config config;
    config.addresses.push_back(address);
    config.secret = secret;
    config.lease_ns = 1'000'000'000;
    config.credit = 4096;
    channel = make_channel(config, config.address(0), {host_of(config.address(0))});
    auto made = std::make_shared<ClientLink>(*this, channel);
    made->prepare();
    link = made;
  }
  ~Stranger() {
    if (started) link->end("");
    link = nullptr;
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return gone; });
  }
  void say(const void* bytes, std::size_t size) {
    link->put_raw(static_cast<const std::byte*>(bytes), size);
    if (!std::exchange(started, true)) {
      static_cast<ClientLink&>(*link).start();
    } else {
      link->flush();
    }
  }
  void say(const Hello& hello) {
    std::byte bytes[Hello::kBytes];
    hello.write(bytes);
    say(bytes, sizeof bytes);
  }
  // Returns the next message, or "" if the link has ended.
  std::string hear() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return !heard.empty() || ended; });
    if (heard.empty()) return "";
    std::string first = heard.front();
    heard.erase(heard.begin());
    return first;
  }
  std::string answer() {
    const std::string bytes = hear();
    Answer answer;
    if (bytes.size() != Answer::kBytes || !answer.read(std::as_bytes(std::span(bytes)))) return "";
    return answer.welcome ? "welcome" : answer.text;
  }
  std::string took(const LinkRef&, std::span<const grpc::Slice> message) noexcept override {
    const std::scoped_lock lock(mutex);
    std::string whole;
    for (const grpc::Slice& each : message)
      whole.append(reinterpret_cast<const char*>(each.begin()), each.size());
    heard.push_back(whole);
    changed.notify_all();
    return "";
  }
  bool more(Link&) noexcept override { return false; }
  void over(const LinkRef&, const std::string&, const std::string&) noexcept override {
    const std::scoped_lock lock(mutex);
    ended = true;
    changed.notify_all();
  }
  void destroyed() noexcept override {
    const std::scoped_lock lock(mutex);
    gone = true;
    changed.notify_all();
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> heard;
  bool started = false;
  bool ended = false;
  bool gone = false;
  std::shared_ptr<grpc::Channel> channel;
  LinkRef link;
};

// The hello that the network of worker 1 would send.
inline Hello good_hello(const GrpcWorkers& workers, int num_workers) {
  Hello hello;
  std::strcpy(hello.version, DIST_GRPC_VERSION);
  std::strcpy(hello.transport, "grpc");
  hello.purpose = Purpose::kControl;
  hello.from = 1;
  hello.num_workers = num_workers;
  hello.credit = 4096;
  hello.lease_ns = static_cast<uint64_t>(kDefaultLeaseNs);
  ClusterDigest digest;
  for (int w = 0; w < num_workers; ++w) digest.add(workers.address(w));
  digest.add("");
  hello.cluster = digest.take();
  return hello;
}

}  // namespace dist::grpc_link

// SPDX-License-Identifier: Apache-2.0
// LinkOwner: the base of Endpoint and Calls. It accepts links, keeps those that have not been proven yet, and
// does periodic work on a thread: heartbeats, leases and retries. It also keeps replaced channels until no
// link uses them.
//
// Lock order: `owning_` is taken after all other locks except those of links and queues.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/os/thread.hpp"
#include "core/net/grpc/channels.hpp"
#include "core/net/grpc/config.hpp"
#include "core/net/grpc/link.hpp"
#include "core/net/grpc/listener.hpp"
#include "core/net/grpc/names.hpp"
#include "core/net/grpc/probe.hpp"

namespace dist::grpc_link {

class LinkOwner : public LinkUser {
 public:
  // The port on which it listens.
  int port() const noexcept { return incoming_.port(); }
  void destroyed() noexcept final;

 protected:
  // Time until another attempt to reach a peer.
  static constexpr int64_t kRetryNs = 100'000'000;
  // How long a peer may take to answer before a probe looks for the reason. Deadlines may be short.
  static constexpr int64_t kProbeAfterNs = 300'000'000;

  // One run of the periodic work.
  struct Turn {
    int64_t now_ns;
    bool paused;  // this process did not run, so it has received nothing, even if its peers sent heartbeats
    bool beats;   // a heartbeat is due
    bool named;   // a host name has been resolved, so retries need not wait any longer
  };

  // The functions are passed to Listener and Prober.
  LinkOwner(Config config, std::function<void(int)> wrong_secret, std::function<void(int)> ended_unproven,
            Prober::Tell tell);
  ~LinkOwner() = default;

  // These return an empty string, or the reason for a failure. Calling listen_on() is optional.
  std::string listen_on(const std::vector<std::string>& addresses);
  std::string start_thread(const char* name);
  // Whether it listens.
  bool serving() const noexcept { return server_ != nullptr; }

  // Does the periodic work. Called on the thread. Returns the time of the next work.
  virtual int64_t look(const Turn& turn) noexcept = 0;
  // Makes the thread look again, and ends wait_for_change().
  void wake() noexcept;
  uint64_t changes() noexcept;
  // Waits until something has changed since `seen`. Returns false if `end` passes first.
  bool wait_for_change(uint64_t seen, std::chrono::steady_clock::time_point end) noexcept;

  // Counts a link that is about to be created. Returns false if this owner is stopping.
  bool begin_link() noexcept;
  void keep_unproven(const LinkRef& link);
  // The link has been accepted, has been refused, or has ended.
  void proven(const Link& link) noexcept;
  std::vector<LinkRef> unproven() noexcept;
  // Since when an attempt to connect to this worker has been unanswered; 0: no attempt is.
  int64_t unanswered_since_ns(int peer) noexcept;
  // Keeps a channel that has been replaced or is no longer needed. gRPC's own thread must not destroy a link
  // that holds the last reference: if no other channel is left, gRPC would wait there for that same thread to
  // end.
  void retire(std::shared_ptr<grpc::Channel> channel) noexcept;

  // Call these in this order at the end. No link can begin after the first one.
  void stop_thread() noexcept;
  void stop_server() noexcept;
  // Returns false if links are left at `end`.
  bool wait_for_links(std::chrono::steady_clock::time_point end) noexcept;
  // Waits for all links, and frees the server and the channels.
  void free_all() noexcept;
  bool stopping() noexcept;

  const Config config_;
  Listener incoming_;
  Prober prober_;

 private:
  class Service final : public grpc::CallbackGenericService {
   public:
    explicit Service(LinkOwner& owner) noexcept : owner_(owner) {}
    grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
      return owner_.accept(context);
    }

   private:
    LinkOwner& owner_;
  };

  grpc::ServerGenericBidiReactor* accept(grpc::GenericCallbackServerContext* context);
  static void* watch_main(void* self);
  void watch() noexcept;
  int64_t look_at_links(int64_t now) noexcept;

  Service service_;
  std::unique_ptr<grpc::Server> server_;
  Thread watcher_;

  std::mutex owning_;
  std::condition_variable woken_;
  uint64_t changes_ = 0;
  bool stopping_ = false;
  int links_ = 0;  // number of links that exist
  std::vector<LinkRef> unproven_;
  std::vector<std::shared_ptr<grpc::Channel>> retired_;

  std::atomic<bool> named_{false};

 protected:
  Names names_;  // destroyed first, because its thread calls wake()
};

}  // namespace dist::grpc_link

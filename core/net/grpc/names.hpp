// SPDX-License-Identifier: Apache-2.0
// Names: the IP addresses of host names, as the system resolves them. getaddrinfo() cannot be cancelled and
// may block for as long as a name server does not answer, so each lookup runs on a detached thread. No thread
// ever waits for a lookup. The lookup's thread owns its data, and its code stays loaded because libdist never
// unloads its modules.
//
// Invariant: a process has at most one outstanding lookup per name and module, regardless of how many
// networks ask for the name.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/os/addresses.hpp"

namespace dist::grpc_link {

class Names {
 public:
  // If a name is asked for again, the next lookup begins this long after the previous one began, or when that
  // one ends.
  static constexpr int64_t kAgainNs = 500'000'000;

  // When a lookup ends, `answered` is called on another thread, under no lock except that of this object,
  // if ask() was called for that name during the lookup. `answered` must return soon and must not call this
  // object.
  explicit Names(std::function<void()> answered);
  // Does not wait for lookups. `answered` is not called after this.
  ~Names();
  Names(const Names&) = delete;
  Names& operator=(const Names&) = delete;

  // Returns the latest answer, and begins a lookup in the background if one is due. If no lookup has
  // succeeded yet, the list is empty, and during the first second the reason is empty, too. If later lookups
  // fail, the last known addresses remain. An IP address is returned unchanged. Never blocks. Throws
  // std::bad_alloc.
  HostAddresses ask(const std::string& host);
  // Calls ask(), and returns whether the name now has other addresses than these, which must be sorted.
  bool moved(const std::string& host, const std::vector<std::string>& sorted);

  using LookUp = HostAddresses (*)(const std::string& host);
  // For tests: the function that lookups call instead of look_up(); NULL restores it.
  static void look_up_with(LookUp instead) noexcept;

 private:
  struct Name;
  struct Asker;
  static std::shared_ptr<Name> find(const std::string& host);
  static void begin(const std::shared_ptr<Name>& name);
  static void* lookup_main(void* given);

  const std::shared_ptr<Asker> asker_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Name>> wanted_;
};

// Returns a copy in ascending order.
std::vector<std::string> sorted(std::vector<std::string> list);

}  // namespace dist::grpc_link

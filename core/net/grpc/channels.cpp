// SPDX-License-Identifier: Apache-2.0
#include "core/net/grpc/channels.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <iterator>
#include <mutex>
#include <thread>
#include <utility>

#include "core/base/os/thread.hpp"

namespace dist::grpc_link {
namespace {

using Clock = std::chrono::system_clock;
using Channels = std::vector<std::shared_ptr<grpc::Channel>>;
// Usually enough to connect to another process on this machine or nearby.
constexpr std::chrono::milliseconds kPatience{20};
// How long the thread waits before it also considers channels that have been added meanwhile.
constexpr std::chrono::seconds kLookAgain{1};

// Destroys the channels that are not connecting, and those that stop connecting before `until`. The rest stay
// in the list.
void await_connected(Channels& channels, Clock::time_point until) noexcept {
  std::erase_if(channels, [&](const std::shared_ptr<grpc::Channel>& each) {
    while (connects(*each)) {
      if (!each->WaitForStateChange(GRPC_CHANNEL_CONNECTING, until)) return false;
    }
    return true;
  });
}

struct Remaining {
  std::mutex mutex;
  Channels channels;
  bool has_thread = false;
};

// Never destroyed, because the thread may outlive main().
Remaining& remaining() {
  static auto* const all = new Remaining;
  return *all;
}

void end_remaining() noexcept {
  Remaining& all = remaining();
  Channels own;
  for (;;) {
    {
      const std::scoped_lock lock(all.mutex);
      own.insert(own.end(), std::make_move_iterator(all.channels.begin()),
                 std::make_move_iterator(all.channels.end()));
      all.channels.clear();
      all.has_thread = !own.empty();
      if (own.empty()) return;
    }
    await_connected(own, Clock::now() + kLookAgain);
  }
}

}  // namespace

bool connects(grpc::Channel& channel) noexcept { return channel.GetState(false) == GRPC_CHANNEL_CONNECTING; }

Channels take_idle(Channels& retired) {
  const auto idle = std::partition(
      retired.begin(), retired.end(),
      [](const std::shared_ptr<grpc::Channel>& each) { return each.use_count() > 1 || connects(*each); });
  Channels taken(std::make_move_iterator(idle), std::make_move_iterator(retired.end()));
  retired.erase(idle, retired.end());
  return taken;
}

void release(Channels channels) noexcept {
  std::erase(channels, nullptr);
  await_connected(channels, Clock::now() + kPatience);
  if (channels.empty()) return;
  Remaining& all = remaining();
  const std::scoped_lock lock(all.mutex);
  all.channels.insert(all.channels.end(), std::make_move_iterator(channels.begin()),
                      std::make_move_iterator(channels.end()));
  if (all.has_thread) return;
  const AsyncSignalsBlocked blocked;
  try {
    std::thread([] {
      name_this_thread("dist-channels");
      end_remaining();
    }).detach();
    all.has_thread = true;
  } catch (const std::exception&) {
    // The next call tries again.
  }
}

}  // namespace dist::grpc_link

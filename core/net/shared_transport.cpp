// SPDX-License-Identifier: Apache-2.0
#include "core/net/shared_transport.hpp"

namespace dist {

SharedTransport::SharedTransport(Transport& below) noexcept : below_(below) { below_.listen(this); }

SharedTransport::~SharedTransport() { below_.listen(nullptr); }

SharedTransport::Share::Share(SharedTransport& whole) noexcept
    : ForwardingTransport(whole.below_), whole_(whole) {}

SharedTransport::Share::~Share() {
  const std::lock_guard lock(whole_.mutex_);
  set_member(whole_.listening_, *this, false);
  set_member(whole_.forgetting_, *this, false);
}

// Holds the lock, so that a listener is not called after it has been replaced.
void SharedTransport::happened() noexcept {
  const std::lock_guard lock(mutex_);
  for (const Share& each : listening_) each.listener_->happened();
}

void SharedTransport::listen(Share& share, TransportListener* listener) noexcept {
  const std::lock_guard lock(mutex_);
  share.listener_ = listener;
  set_member(listening_, share, listener != nullptr);
}

// Calls the transport without the lock, because a transport calls its listener.
void SharedTransport::forget(Share& share, uint32_t generation, uint32_t run) noexcept {
  MessageKey all;
  {
    const std::lock_guard lock(mutex_);
    share.first_.generation = generation;
    share.first_.run = run;
    set_member(forgetting_, share, true);
    all = share.first_;
    for (const Share& each : forgetting_) {
      if (each.first_.before(all.generation, all.run)) all = each.first_;
    }
  }
  below_.forget(all.generation, all.run);
}

}  // namespace dist

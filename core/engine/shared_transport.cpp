// SPDX-License-Identifier: Apache-2.0
#include "core/engine/shared_transport.hpp"

namespace dist {

SharedTransport::SharedTransport(Transport& below) noexcept : below_(below) {
  for (Share& each : shares_) each.whole_ = this;
  below_.listen(this);
}

SharedTransport::~SharedTransport() { below_.listen(nullptr); }

// Under the lock, so that a listener that has been replaced is not called any more.
void SharedTransport::happened() noexcept {
  const std::lock_guard lock(mutex_);
  for (const Share& each : shares_) {
    if (each.listener_ != nullptr) each.listener_->happened();
  }
}

void SharedTransport::listen(Share& share, TransportListener* listener) noexcept {
  const std::lock_guard lock(mutex_);
  share.listener_ = listener;
}

// Transports call their listeners, so that the lock is not held while they are called.
void SharedTransport::forget(Share& share, uint32_t generation, uint32_t run) noexcept {
  MessageKey all;
  {
    const std::lock_guard lock(mutex_);
    share.first_.generation = generation;
    share.first_.run = run;
    all = share.first_;
    for (const Share& each : shares_) {
      if (each.first_.before(all.generation, all.run)) all = each.first_;
    }
  }
  below_.forget(all.generation, all.run);
}

}  // namespace dist

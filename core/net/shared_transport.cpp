// SPDX-License-Identifier: Apache-2.0
#include "core/net/shared_transport.hpp"

namespace dist {

SharedTransport::SharedTransport(Transport& below) noexcept : below_(below) { below_.listen(this); }

SharedTransport::~SharedTransport() { below_.listen(nullptr); }

SharedTransport::Share::Share(SharedTransport& whole) noexcept
    : ForwardingTransport(whole.below_), whole_(whole) {}

SharedTransport::Share::~Share() {
  const std::lock_guard lock(whole_.mutex_);
  unlink(*this, &Share::listening_);
  unlink(*this, &Share::forgetting_);
}

void SharedTransport::link(Share*& list, Share& share, List at) noexcept {
  Share::Link& own = share.*at;
  if (own.before != nullptr) return;
  own = {list, &list};
  if (list != nullptr) (list->*at).before = &own.next;
  list = &share;
}

void SharedTransport::unlink(Share& share, List at) noexcept {
  Share::Link& own = share.*at;
  if (own.before == nullptr) return;
  *own.before = own.next;
  if (own.next != nullptr) (own.next->*at).before = own.before;
  own = {};
}

// Holds the lock, so that a replaced listener is not called any more.
void SharedTransport::happened() noexcept {
  const std::lock_guard lock(mutex_);
  for (const Share* each = listening_; each != nullptr; each = each->listening_.next)
    each->listener_->happened();
}

void SharedTransport::listen(Share& share, TransportListener* listener) noexcept {
  const std::lock_guard lock(mutex_);
  share.listener_ = listener;
  listener != nullptr ? link(listening_, share, &Share::listening_) : unlink(share, &Share::listening_);
}

// Does not hold the lock while calling the transport, because transports call their listeners.
void SharedTransport::forget(Share& share, uint32_t generation, uint32_t run) noexcept {
  MessageKey all;
  {
    const std::lock_guard lock(mutex_);
    share.first_.generation = generation;
    share.first_.run = run;
    link(forgetting_, share, &Share::forgetting_);
    all = share.first_;
    for (const Share* each = forgetting_; each != nullptr; each = each->forgetting_.next) {
      if (each->first_.before(all.generation, all.run)) all = each->first_;
    }
  }
  below_.forget(all.generation, all.run);
}

}  // namespace dist

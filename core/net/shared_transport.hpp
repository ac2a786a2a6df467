// SPDX-License-Identifier: Apache-2.0
// SharedTransport: one transport for several communicators of a worker. Message keys contain the group, which
// keeps the communicators' messages apart. Each communicator has a share with its own listener.
//
// Invariant: the messages of a run are released only after every share that calls forget() at all has
// forgotten the run. Shares that never call it have no influence on this.
#pragma once

#include <cstdint>
#include <mutex>

#include "core/base/intrusive_list.hpp"
#include "core/net/forwarding_transport.hpp"

namespace dist {

class SharedTransport final : public TransportListener {
 public:
  // `below` must outlive it.
  explicit SharedTransport(Transport& below) noexcept;
  // All shares must have been destroyed.
  ~SharedTransport();
  SharedTransport(const SharedTransport&) = delete;
  SharedTransport& operator=(const SharedTransport&) = delete;

  // One communicator's share of the transport, as long as this object exists. It must have no transfer in
  // flight when it is destroyed.
  struct Listening;
  struct Forgetting;
  class Share final : public ForwardingTransport, public ListLink<Listening>, public ListLink<Forgetting> {
   public:
    explicit Share(SharedTransport& whole) noexcept;
    ~Share();

    void forget(uint32_t generation, uint32_t run) noexcept override {
      whole_.forget(*this, generation, run);
    }
    void listen(TransportListener* listener) noexcept override { whole_.listen(*this, listener); }

   private:
    friend class SharedTransport;
    SharedTransport& whole_;
    TransportListener* listener_ = nullptr;
    MessageKey first_;  // the first run that this share has not forgotten
  };

  void happened() noexcept override;

 private:
  // Adds the share to a list or removes it. Has no effect if that has been done.
  template <class Tag>
  static void set_member(IntrusiveList<Share, Tag>& list, Share& share, bool member) noexcept {
    if (static_cast<ListLink<Tag>&>(share).linked() == member) return;
    if (member) {
      list.push_front(share);
    } else {
      list.remove(share);
    }
  }
  void forget(Share& share, uint32_t generation, uint32_t run) noexcept;
  void listen(Share& share, TransportListener* listener) noexcept;

  Transport& below_;
  std::mutex mutex_;
  // Two lists, so that a share that neither listens nor forgets costs the others nothing.
  IntrusiveList<Share, Listening> listening_;
  IntrusiveList<Share, Forgetting> forgetting_;
};

}  // namespace dist

// SPDX-License-Identifier: Apache-2.0
// UnsteadyTransport: forwards messages to a transport late and in a different order, and loses a worker at a
// message that the test chooses. It is deterministic: for the same seed, the same calls in the same order
// have the same results.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

#include "core/net/forwarding_transport.hpp"
#include "tests/unit/transport_suite.hpp"

namespace dist {

class UnsteadyTransport final : public ForwardingTransport {
 public:
  // State that the transports of all workers share.
  struct Fate {
    std::atomic<int64_t> messages{0};
    int64_t lose_at = -1;         // the message before which the victim is lost; -1 = none
    Transport* victim = nullptr;  // the transport below its UnsteadyTransport
  };

  UnsteadyTransport(Transport& inner, Fate& fate, uint64_t seed) noexcept
      : ForwardingTransport(inner), fate_(fate), random_(seed) {}

  void send(int to, const MessageKey& key, const std::byte* data, std::size_t bytes,
            Transfer& transfer) noexcept override {
    if (fate_.messages.fetch_add(1) == fate_.lose_at) fate_.victim->close();
    hold(to, key, const_cast<std::byte*>(data), bytes, true, transfer);
  }
  void receive(int from, const MessageKey& key, std::byte* data, std::size_t bytes,
               Transfer& transfer) noexcept override {
    hold(from, key, data, bytes, false, transfer);
  }
  void cancel(Transfer& transfer) noexcept override {
    bool held = false;
    {
      const std::scoped_lock lock(mutex_);
      const auto at = std::find_if(held_.begin(), held_.end(),
                                   [&](const Held& each) { return each.transfer == &transfer; });
      if (at != held_.end()) {
        held_.erase(at);
        held = true;
      }
    }
    if (!held) return below_.cancel(transfer);
    transfer.finish(Transfer::End::kCancelled);
    tell();
  }
  void progress() noexcept override {
    {
      const std::scoped_lock lock(mutex_);
      std::shuffle(held_.begin(), held_.end(), random_);
      std::size_t kept = 0;
      for (Held& each : held_) {
        if (each.looks-- > 0) {
          held_[kept++] = each;
        } else {
          begin(each);
        }
      }
      held_.resize(kept);
    }
    below_.progress();
  }
  void listen(TransportListener* listener) noexcept override {
    {
      const std::scoped_lock lock(telling_);
      listener_ = listener;
    }
    below_.listen(listener);
  }
  void close() noexcept override {
    below_.close();
    const std::scoped_lock lock(mutex_);
    // These transfers end with the results of the transport.
    for (const Held& each : held_) begin(each);
    held_.clear();
  }

 private:
  struct Held {
    Transfer* transfer;
    Transfer::Message message;
    bool sends;
    int looks;  // number of calls of progress() before it is forwarded
  };
  void hold(int worker, const MessageKey& key, std::byte* data, std::size_t bytes, bool sends,
            Transfer& transfer) noexcept {
    transfer.begin({worker, key, data, bytes});
    const std::scoped_lock lock(mutex_);
    held_.push_back({&transfer, transfer.message(), sends, static_cast<int>(random_() % 4)});
  }
  void begin(const Held& held) noexcept {
    const Transfer::Message& m = held.message;
    if (held.sends) {
      below_.send(m.worker, m.key, m.data, m.bytes, *held.transfer);
    } else {
      below_.receive(m.worker, m.key, m.data, m.bytes, *held.transfer);
    }
  }
  void tell() noexcept {
    const std::scoped_lock lock(telling_);
    if (listener_ != nullptr) listener_->happened();
  }

  Fate& fate_;
  std::mutex mutex_;
  std::mt19937_64 random_;
  std::vector<Held> held_;
  std::mutex telling_;
  TransportListener* listener_ = nullptr;
};

// The workers of a fixture, each behind an UnsteadyTransport. None is lost.
template <class Inner, uint64_t seed>
class UnsteadyWorkers final : public TransportFixture {
 public:
  UnsteadyWorkers(int num_workers, std::size_t credit) : inner_(num_workers, credit) {}
  Transport& join(int worker) override {
    Transport& inner = inner_.join(worker);
    made_.push_back(std::make_unique<UnsteadyTransport>(inner, fate_, seed + static_cast<uint64_t>(worker)));
    return *made_.back();
  }

 private:
  Inner inner_;
  UnsteadyTransport::Fate fate_;
  std::vector<std::unique_ptr<UnsteadyTransport>> made_;
};

}  // namespace dist

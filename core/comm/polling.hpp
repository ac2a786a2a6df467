// SPDX-License-Identifier: Apache-2.0
// Tells the transport whether a waiting thread polls or sleeps. See Transport::polls().
#pragma once

#include "core/net/transport.hpp"

namespace dist {

// While an object of this class exists, its thread calls progress() continuously, except while a Sleeping
// exists, and `flag` is true.
class Polling {
 public:
  Polling(Transport& transport, bool& flag) noexcept : transport_(transport), flag_(flag) {
    flag_ = true;
    transport_.poll(true);
  }
  ~Polling() {
    transport_.poll(false);
    flag_ = false;
  }
  Polling(const Polling&) = delete;
  Polling& operator=(const Polling&) = delete;

 private:
  Transport& transport_;
  bool& flag_;
};

// While an object of this class exists, its thread may sleep until the listener is notified. `polls`: the
// thread is inside a Polling.
class Sleeping {
 public:
  explicit Sleeping(Transport& transport, bool polls = false) noexcept
      : transport_(transport), polls_(polls) {
    if (polls_) transport_.poll(false);
    transport_.sleep(true);
  }
  ~Sleeping() {
    transport_.sleep(false);
    if (polls_) transport_.poll(true);
  }
  Sleeping(const Sleeping&) = delete;
  Sleeping& operator=(const Sleeping&) = delete;

 private:
  Transport& transport_;
  const bool polls_;
};

}  // namespace dist

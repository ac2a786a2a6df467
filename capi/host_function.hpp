// SPDX-License-Identifier: Apache-2.0
// A function that the host has registered, with its user_data, until what it was registered with ends.
#pragma once

#include <memory>

#include "core/base/memory.hpp"
#include "dist/types.h"

namespace dist::capi {

template <class Fn>
struct HostFunction {
  Fn fn;
  void* user_data;
  dist_release_fn release;
  Ref<Memory> memory;

  // What the core calls at its end.
  static void end(void* host) {
    auto* const function = static_cast<HostFunction*>(host);
    if (function->release != nullptr) function->release(function->user_data);
    const Ref<Memory> memory = std::move(function->memory);
    function->~HostFunction();
    memory->free(function, sizeof *function, alignof(HostFunction));
  }

  // `add(host)` registers it. Where that fails the host keeps what it gave.
  template <class Add>
  static Status add(Memory& memory, Fn fn, void* user_data, dist_release_fn release, Add&& add) {
    auto* const host = new (memory.allocate(sizeof(HostFunction), alignof(HostFunction)))
        HostFunction{fn, user_data, nullptr, Ref<Memory>::share(&memory)};
    std::unique_ptr<HostFunction, void (*)(void*)> kept(host, end);
    DIST_TRY(add(host));
    kept.release()->release = release;
    return kOk;
  }
};

}  // namespace dist::capi

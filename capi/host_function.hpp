// SPDX-License-Identifier: Apache-2.0
// A function that the host has registered, with its user_data. It is destroyed with the object that it is
// registered with.
#pragma once

#include <memory>

#include "core/base/host_call.hpp"
#include "core/base/memory.hpp"
#include "dist/types.h"

namespace dist::capi {

template <class Fn>
struct HostFunction {
  Fn fn;
  void* user_data;
  dist_release_fn release;
  Ref<Memory> memory;

  // Called by core when the registration ends.
  static void end(void* host) {
    auto* const function = static_cast<HostFunction*>(host);
    if (function->release != nullptr) (void)survived([&] { function->release(function->user_data); });
    const Ref<Memory> memory = std::move(function->memory);
    function->~HostFunction();
    memory->free(function, sizeof *function, alignof(HostFunction));
  }

  // `add(host)` registers the function. If that fails, the host keeps its user_data: `release` is not called.
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

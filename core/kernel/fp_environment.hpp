// SPDX-License-Identifier: Apache-2.0
// The floating-point environment of every sum: round to nearest, keep subnormals. A host may have another
// rounding mode or flush-to-zero enabled; results must not depend on that.
#pragma once

#include <cstdint>

namespace dist {

// Sets this environment, and restores the host's at the end of the scope.
class FpEnvironment {
 public:
#if defined(__x86_64__) || defined(__i386__)
  FpEnvironment() noexcept : host_(__builtin_ia32_stmxcsr()) {
    // All exceptions masked, round to nearest, no flush-to-zero, no denormals-are-zero. The sticky flags (the
    // low six bits) are kept because the host may read them.
    const uint32_t wanted = (host_ & 0x3Fu) | 0x1F80u;
    changed_ = host_ != wanted;
    if (changed_) __builtin_ia32_ldmxcsr(wanted);
  }
  ~FpEnvironment() {
    if (changed_) __builtin_ia32_ldmxcsr(host_);
  }

 private:
  uint32_t host_;
#elif defined(__aarch64__)
  FpEnvironment() noexcept {
    asm volatile("mrs %0, fpcr" : "=r"(host_));
    // Rounding mode 00, FZ and FZ16 off, default NaN off, traps off.
    const uint64_t wanted = 0;
    changed_ = host_ != wanted;
    if (changed_) asm volatile("msr fpcr, %0" ::"r"(wanted));
  }
  ~FpEnvironment() {
    if (changed_) asm volatile("msr fpcr, %0" ::"r"(host_));
  }

 private:
  uint64_t host_;
#else
#error "libdist does not know this CPU's floating-point control register"
#endif
  bool changed_;

 public:
  FpEnvironment(const FpEnvironment&) = delete;
  FpEnvironment& operator=(const FpEnvironment&) = delete;
};

}  // namespace dist

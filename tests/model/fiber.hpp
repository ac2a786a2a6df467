// SPDX-License-Identifier: Apache-2.0
// Fibers: cooperatively scheduled threads, so that a test can choose every interleaving.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace dist::model {

// A stack that runs `main` repeatedly: restart() abandons a call at any point, without running destructors.
// At any time, either one fiber runs or the thread that created it.
class Fiber {
 public:
  using Main = void (*)(void* argument);

  Fiber() = default;
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // The next switch_to() enters main(argument), which must never return.
  void restart(Main main, void* argument);
  // Continues in `to`, until another fiber switches back to this one.
  void switch_to(Fiber& to);
  // Returns a hash of the registers and the stack of a fiber that waits in switch_to(). Fibers with equal
  // hashes continue equally.
  uint64_t hash() const;
  // Clears the unused part of a waiting fiber's stack. Values left there would appear in later frames.
  void sweep();

 private:
  static constexpr std::size_t kStackBytes = std::size_t{96} << 10;
  static void entry();
  [[noreturn]] void base();

  std::unique_ptr<char[]> stack_;
  ucontext_t first_{};
  jmp_buf base_{};  // at the bottom of the stack, after the first entry
  jmp_buf here_{};
  char* end_ = nullptr;  // of the used part of the stack, which grows down
  bool based_ = false;
  bool fresh_ = false;  // switch_to() enters at the base
  Main main_ = nullptr;
  void* argument_ = nullptr;
};

}  // namespace dist::model

// SPDX-License-Identifier: Apache-2.0
// Fibers: cooperatively scheduled threads, so that a test can choose every interleaving.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace dist::model {

// A stack that runs `main` over and over: restart() abandons whatever it is in the middle of, destructors
// included. One fiber, or the thread that made it, runs at a time.
class Fiber {
 public:
  using Main = void (*)(void* argument);

  Fiber() = default;
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // The next switch_to() enters main(argument), which must never return.
  void restart(Main main, void* argument);
  // Goes on in `to`, until somebody switches back to this one.
  void switch_to(Fiber& to);
  // A fiber that waits in switch_to(): of its registers and its stack. Equal where it would go on equally.
  uint64_t hash() const;
  // Of one that waits: clears the stack beyond its end, whose leftovers would come up in later frames.
  void sweep();

 private:
  static constexpr std::size_t kStackBytes = std::size_t{96} << 10;
  static void entry();
  [[noreturn]] void base();

  std::unique_ptr<char[]> stack_;
  ucontext_t first_{};
  jmp_buf base_{};  // at the bottom of the stack, once it has been entered
  jmp_buf here_{};
  char* end_ = nullptr;  // of the stack in use, which grows down
  bool based_ = false;
  bool fresh_ = false;  // switch_to() enters at the base
  Main main_ = nullptr;
  void* argument_ = nullptr;
};

}  // namespace dist::model

// SPDX-License-Identifier: Apache-2.0
#include "tests/model/fiber.hpp"

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "tests/model/machine.hpp"

namespace dist::model {

void Fiber::restart(Main main, void* argument) {
  main_ = main;
  argument_ = argument;
  fresh_ = true;
}

// makecontext() passes integers only.
static thread_local Fiber* entered = nullptr;
void Fiber::entry() { entered->base(); }

void Fiber::base() {
  // Each restart jumps here. This frame exists as long as the stack.
  _setjmp(base_);
  main_(argument_);
  std::abort();
}

// Contexts are used only for the first entry, because each switch costs two system calls. Jumps cost none.
void Fiber::switch_to(Fiber& to) {
  // The lowest address in this frame.
  end_ = static_cast<char*>(__builtin_alloca(16));
  std::memset(end_, 0, 16);
  if (_setjmp(here_) != 0) return;
  if (!to.fresh_) _longjmp(to.here_, 1);
  to.fresh_ = false;
  if (to.based_) _longjmp(to.base_, 1);
  to.based_ = true;
  to.stack_ = std::make_unique<char[]>(kStackBytes);  // all zero
  getcontext(&to.first_);
  to.first_.uc_stack.ss_sp = to.stack_.get();
  to.first_.uc_stack.ss_size = kStackBytes;
  to.first_.uc_link = nullptr;
  makecontext(&to.first_, entry, 0);
  entered = &to;
  setcontext(&to.first_);
  std::abort();
}

uint64_t Fiber::hash() const {
  if (fresh_) return 1;
  uint64_t hash = 0;
  const auto add = [&hash](const char* from, const char* to) {
    uint64_t word;
    for (; from + sizeof word <= to; from += sizeof word) {
      std::memcpy(&word, from, sizeof word);
      hash = mixed(hash, word);
    }
  };
  const auto* registers = reinterpret_cast<const char*>(&here_);
  add(registers, registers + sizeof here_);
  add(end_, stack_.get() + kStackBytes);
  return hash;
}

void Fiber::sweep() {
  if (fresh_) return;
  constexpr std::ptrdiff_t kChunk = 512;
  static constexpr char kClean[kChunk] = {};
  for (char* at = end_; at - stack_.get() >= kChunk && std::memcmp(at - kChunk, kClean, kChunk) != 0;) {
    at -= kChunk;
    std::memset(at, 0, kChunk);
  }
}

}  // namespace dist::model

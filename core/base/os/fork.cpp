// SPDX-License-Identifier: Apache-2.0
#include "core/base/os/fork.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <new>

namespace dist {

int64_t process_id() noexcept { return getpid(); }

WipedWords::WipedWords(int count) noexcept {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t wanted = static_cast<std::size_t>(count) * kStep * sizeof(Word);
  const std::size_t bytes = (wanted + page - 1) / page * page;
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  if (madvise(memory, bytes, MADV_WIPEONFORK) != 0) {
    munmap(memory, bytes);
    return;
  }
  page_ = static_cast<Word*>(memory);
  bytes_ = bytes;
  for (int i = 0; i < count; ++i) new (at(i)) Word(0);
}

WipedWords::~WipedWords() {
  if (page_ != nullptr) munmap(page_, bytes_);
}

ForkGuard::ForkGuard() noexcept : process_(process_id()) {
  if (WipedWords::Word* const word = word_.at(0); word != nullptr) word->store(1, std::memory_order_relaxed);
}

bool ForkGuard::another_process() const noexcept { return process_id() != process_; }

}  // namespace dist

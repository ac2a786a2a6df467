// SPDX-License-Identifier: Apache-2.0
#include "core/base/live_handles.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "core/base/text.hpp"

namespace dist {

bool LiveHandles::describe(char* to, std::size_t size) const noexcept {
  constexpr const char* kWords[kKinds] = {"variable", "dataset", "iterator", "metric"};
  const std::lock_guard lock(mutex_);
  const auto kinds = std::count_if(counts_, counts_ + kKinds, [](int64_t count) { return count > 0; });
  int kind = 0;
  to[0] = '\0';
  std::size_t at = 0;
  for (int i = 0; i < kKinds; ++i) {
    if (counts_[i] == 0) continue;
    const char* const separator = kind == 0 ? "" : kind == kinds - 1 ? " and " : ", ";
    ++kind;
    const auto append = [&](const char* format, auto... values) {
      const int written = std::snprintf(to + at, size - at, format, values...);
      at = std::min(size - 1, at + static_cast<std::size_t>(std::max(written, 0)));
    };
    append("%s%lld %s%s", separator, static_cast<long long>(counts_[i]), kWords[i],
           counts_[i] == 1 ? "" : "s");
    if (i == kVariable) {
      append(counts_[i] == 1 ? " (\"%s\")" : " (the first is \"%s\")",
             Shown(variables_.first()->name_).c_str());
    }
  }
  return kinds > 0;
}

void LiveHandle::open(LiveHandles& all, LiveHandles::Kind kind, const char* name) noexcept {
  const std::lock_guard lock(all.mutex_);
  all_ = Ref<LiveHandles>::share(&all);
  kind_ = kind;
  name_ = name;
  ++all.counts_[kind];
  if (kind != LiveHandles::kVariable) return;
  all.variables_.push_back(*this);
}

void LiveHandle::close() noexcept {
  if (!all_ || all_->memory().forked()) return;
  const Ref<LiveHandles> kept = std::move(all_);
  LiveHandles& all = *kept;
  const std::lock_guard lock(all.mutex_);
  --all.counts_[kind_];
  if (kind_ != LiveHandles::kVariable) return;
  all.variables_.remove(*this);
}

}  // namespace dist

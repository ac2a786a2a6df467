// SPDX-License-Identifier: Apache-2.0
// Sources whose elements come from a host callback, either one after the other or file by file.
#pragma once

#include <memory_resource>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/input/source.hpp"

struct dist_value;  // the type that a host source returns; it is a Value

namespace dist {

// HostSource: the host's callback and data. Its destructor calls release(user_data).
class HostSource : public Counted {
 public:
  using Fn = dist_status (*)(dist_strategy* strategy, int64_t index, dist_value** out_element,
                             void* user_data);
  using FileFn = dist_status (*)(dist_strategy* strategy, std::size_t file, const char* name, int64_t index,
                                 dist_value** out_element, void* user_data);
  using Release = void (*)(void* user_data);

  // `strategy` is only passed on to the callbacks.
  HostSource(Memory& memory, dist_strategy* strategy, Fn fn, FileFn file_fn,
             std::span<const char* const> names, void* user_data);
  // Must be called last, when creation can no longer fail. Until then, nothing is released.
  void own(Release on_end) noexcept { on_end_ = on_end; }

  bool has_files() const noexcept { return file_fn_ != nullptr; }
  std::size_t num_files() const noexcept { return names_.size(); }
  const char* name(std::size_t file) const noexcept { return names_[file].c_str(); }
  // Returns element `index`, which is an index in the file if there are files. Fails with OUT_OF_RANGE if
  // there is no such element. On failure, uses the callback's message if it has recorded one.
  Status element(std::size_t file, int64_t index, ValueRef* out);

 private:
  ~HostSource() override {
    if (on_end_ != nullptr) on_end_(user_data_);
  }

  dist_status call(std::size_t file, int64_t index, dist_value** out_element);

  std::mutex one_at_a_time_;  // ensures that passes do not call the host concurrently
  dist_strategy* const strategy_;
  const Fn fn_;
  const FileFn file_fn_;
  std::pmr::vector<std::pmr::string> names_;
  void* const user_data_;
  Release on_end_ = nullptr;
};

class ElementSource final : public Source {
 public:
  enum class Give { kElements, kNumbers, kNumbersOfRows };

  ElementSource(Memory& memory, Ref<HostSource> host, int32_t interleave, Give give, int64_t limit) noexcept
      : Source(memory), host_(std::move(host)), interleave_(interleave), give_(give), limit_(limit) {}

  SourceFacts facts() const noexcept override { return {host_->has_files(), host_->num_files()}; }
  Status make_pass(const Recipe& recipe, Ref<Pass>* out) override;
  Status numbered(bool batches, int64_t limit, Ref<Source>* out) override;
  Status model(ValueRef* out, bool* fixed) override;
  void describe(char* text, std::size_t size) const noexcept override;

 private:
  Ref<HostSource> host_;
  int32_t interleave_;
  Give give_;
  int64_t limit_;
};

}  // namespace dist

// SPDX-License-Identifier: Apache-2.0
#include "core/input/element_source.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <utility>

#include "core/base/host_call.hpp"
#include "core/input/batch.hpp"
#include "core/input/cutter.hpp"
#include "core/input/reader.hpp"

namespace dist {
namespace {

using Cut = Division::Cut;
using Give = ElementSource::Give;

Status end_of_source() noexcept { return Status(DIST_OUT_OF_RANGE); }

// The elements of a host source, batch by batch.
class ElementPass final : public Pass {
 public:
  ElementPass(Memory& memory, Ref<HostSource> host, const Recipe& recipe, int32_t interleave, Give give,
              int64_t limit)
      : Pass(memory),
        division_(recipe.division),
        give_(give),
        limit_(limit > 0 ? limit : std::numeric_limits<int64_t>::max()),
        reader_(memory, std::move(host), division_.files, interleave),
        cutter_(memory, division_),
        slices_(&memory) {}

  Status seek(const Position& position) override {
    Status status = reader_.skip(position.elements);
    if (status.ok() && position.examples > 0) {
      status = open_element();
      if (status.ok() && position.examples >= open_.count) status = end_of_source();
    }
    if (status.code() == DIST_OUT_OF_RANGE) {
      return invalid_argument(
          "the position is at element %lld, example %lld, which is past the end of the source",
          static_cast<long long>(position.elements), static_cast<long long>(position.examples));
    }
    DIST_TRY(status);
    open_.first += position.examples;
    open_.count -= position.examples;
    cutter_.skip(position.batches);
    return kOk;
  }

  Position position() const noexcept override {
    // An element that has been read but not used yet counts as not read.
    const bool open = static_cast<bool>(open_.element);
    return {0, reader_.count() - (open ? 1 : 0), open ? open_.first : 0, cutter_.batches()};
  }

  Status next_batch(ValueRef* out) override {
    while (!division_.batches.takes(cutter_.batches())) DIST_TRY(skip_batch());
    if (division_.cut == Cut::kWhole || (division_.cut == Cut::kEven && division_.batch == 0)) {
      return next_element(out);
    }
    if (cutter_.needs_batch_examples()) {
      DIST_TRY(or_over(open_element()));
      cutter_.set_batch_examples(open_.count);
    }
    slices_.clear();
    int64_t found = 0;
    DIST_TRY(collect(cutter_.wanted(), &found));
    if (!cutter_.cut(found)) return pass_is_over();
    if (slices_.empty()) DIST_TRY(show_model());
    const Status status = division_.batch == 0 ? split_elements(memory(), slices_, cutter_.parts(), out)
                                               : stack_elements(memory(), slices_, cutter_.parts(), out);
    slices_.clear();  // the slices may refer to the host's memory
    return status;
  }

 private:
  static Status or_over(Status status) noexcept {
    return status.code() == DIST_OUT_OF_RANGE ? pass_is_over() : status;
  }

  Status read(ValueRef* out) {
    do {
      if (over_ || reader_.count() >= limit_) return end_of_source();
      const Status status = reader_.next(out);
      over_ = status.code() == DIST_OUT_OF_RANGE;
      DIST_TRY(status);
    } while (!division_.elements.takes(reader_.count() - 1));
    return give_ == Give::kElements ? kOk : number_examples(out);
  }

  // Replaces an element by the numbers of its examples.
  Status number_examples(ValueRef* element) {
    const bool rows = give_ == Give::kNumbersOfRows;
    int64_t shape[] = {1, 3};
    if (rows && division_.cut != Cut::kWhole)
      DIST_TRY(count_examples(**element, reader_.count() - 1, &shape[0]));
    const dist_tensor numbers{nullptr, DIST_I64, rows ? 2 : 1, rows ? shape : shape + 1, nullptr};
    ValueRef made;
    DIST_TRY(Value::copy_tensor(memory(), numbers, &made));
    auto* to = static_cast<int64_t*>(made->tensor().data);
    for (int64_t example = 0; example < shape[0]; ++example, to += 3) {
      to[0] = static_cast<int64_t>(reader_.file());
      to[1] = reader_.index();
      to[2] = example;
    }
    *element = std::move(made);
    return kOk;
  }

  // Makes sure that open_ has an element with unused examples.
  Status open_element() {
    if (open_.element) return kOk;
    ValueRef element;
    DIST_TRY(read(&element));
    const int64_t index = reader_.count() - 1;
    int64_t examples = 1;
    if (division_.batch == 0) DIST_TRY(count_examples(*element, index, &examples));
    open_ = {std::move(element), index, 0, examples};
    return kOk;
  }

  // Adds `wanted` examples to slices_, or as many as there are.
  Status collect(int64_t wanted, int64_t* found) {
    while (*found < wanted) {
      const Status status = open_element();
      if (status.code() == DIST_OUT_OF_RANGE) return kOk;
      DIST_TRY(status);
      const int64_t count = std::min(wanted - *found, open_.count);
      if (count > 0) slices_.push_back({open_.element, open_.index, open_.first, count});
      *found += count;
      open_.first += count;
      open_.count -= count;
      if (open_.count == 0) open_ = {};
    }
    return kOk;
  }

  // Without examples, the next element serves as the model of the batch. If there is no such element either,
  // the structure of a batch is unknown.
  Status show_model() {
    DIST_TRY(or_over(open_element()));
    slices_.push_back({open_.element, open_.index, open_.first, 0});
    return kOk;
  }

  // For elements that are batches.
  Status next_element(ValueRef* out) {
    ValueRef element;
    DIST_TRY(or_over(read(&element)));
    const int64_t index = reader_.count() - 1;
    if (division_.cut == Cut::kWhole) {
      DIST_TRY(check_whole(*element, index));
      cutter_.skip(1);
      *out = std::move(element);
      return kOk;
    }
    int64_t examples = 0;
    DIST_TRY(count_examples(*element, index, &examples));
    cutter_.cut(examples);
    const Slice whole{std::move(element), index, 0, examples};
    return split_elements(memory(), {&whole, 1}, cutter_.parts(), out);
  }

  // Skips a batch that belongs to another worker.
  Status skip_batch() {
    for (int64_t left = std::max<int64_t>(division_.batch, 1); left > 0; --left) {
      ValueRef skipped;
      DIST_TRY(or_over(read(&skipped)));
    }
    cutter_.skip(1);
    return kOk;
  }

  const Division division_;
  const Give give_;
  const int64_t limit_;
  Reader reader_;
  Cutter cutter_;
  Slice open_;                      // the unused part of an element
  std::pmr::vector<Slice> slices_;  // of one batch; not freed in between, to keep its capacity
  bool over_ = false;
};

}  // namespace

HostSource::HostSource(Memory& memory, dist_strategy* strategy, Fn fn, FileFn file_fn,
                       std::span<const char* const> names, void* user_data)
    : Counted(memory),
      strategy_(strategy),
      fn_(fn),
      file_fn_(file_fn),
      names_(&memory),
      user_data_(user_data) {
  names_.reserve(names.size());
  for (const char* const name : names) names_.emplace_back(name);
}

dist_status HostSource::call(std::size_t file, int64_t index, dist_value** out_element) {
  const HostCall inside("a dataset's source", HostCall::Refuses::kWaits);
  return guarded("the dataset's source", [&] {
    return has_files() ? file_fn_(strategy_, file, name(file), index, out_element, user_data_)
                       : fn_(strategy_, index, out_element, user_data_);
  });
}

Status HostSource::element(std::size_t file, int64_t index, ValueRef* out) {
  DIST_TRY(check_may_wait(nullptr));
  const std::lock_guard lock(one_at_a_time_);
  dist_value* element = nullptr;
  // The code in this thread's error record shows whether the callback has recorded a message, so the code is
  // cleared before the call.
  ErrorRecord& error = last_error();
  const dist_status before = std::exchange(error.code, DIST_OK);
  const dist_status code = call(file, index, &element);
  ValueRef given = ValueRef::adopt(reinterpret_cast<Value*>(element));  // released even if the call fails
  const bool has_words = error.code != DIST_OK;
  if (!has_words) error.code = before;
  if (code == DIST_OK) {
    if (!given) {
      return invalid_argument("the source returned `DIST_OK` for element %lld, but set no element",
                              static_cast<long long>(index));
    }
    *out = std::move(given);
    return kOk;
  }
  if (code == DIST_OUT_OF_RANGE) return end_of_source();
  if (!has_words) {
    return fail(
        code, "the source returned %s for element %lld%s%s without a reason. Use `dist_fail()` to report one",
        status_name(code), static_cast<long long>(index), has_files() ? " of " : "",
        has_files() ? name(file) : "");
  }
  error.code = code;
  return Status(code);
}

Status ElementSource::make_pass(const Recipe& recipe, Ref<Pass>* out) {
  *out =
      Ref<Pass>::adopt(make_counted<ElementPass>(memory(), host_, recipe, interleave_, give_, limit_).take());
  return kOk;
}

Status ElementSource::numbered(bool batches, int64_t limit, Ref<Source>* out) {
  const Give give = batches ? Give::kNumbersOfRows : Give::kNumbers;
  *out = Ref<Source>::adopt(make_counted<ElementSource>(memory(), host_, interleave_, give, limit).take());
  return kOk;
}

Status ElementSource::model(ValueRef* out, bool* fixed) {
  *fixed = false;
  Reader reader(memory(), host_, {}, 0);
  const Status status = reader.next(out);
  return status.code() == DIST_OUT_OF_RANGE
             ? fail(DIST_OUT_OF_RANGE,
                    "the source has no element, so the structure of its elements is unknown")
             : status;
}

void ElementSource::describe(char* text, std::size_t size) const noexcept {
  if (!host_->has_files()) {
    copy_text(text, size, "elements returned by a callback");
  } else if (interleave_ > 1) {
    std::snprintf(text, size, "elements of %zu file(s), %d read in turn", host_->num_files(), interleave_);
  } else {
    std::snprintf(text, size, "elements of %zu file(s), one after another", host_->num_files());
  }
}

}  // namespace dist

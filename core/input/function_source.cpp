// SPDX-License-Identifier: Apache-2.0
#include "core/input/function_source.hpp"

#include <algorithm>
#include <cstdio>

#include "core/input/dataset.hpp"
#include "core/input/deal.hpp"

namespace dist {
namespace {

class FunctionPass final : public Pass {
 public:
  FunctionPass(Memory& memory, Ref<FunctionSource> source, std::size_t num_replicas)
      : Pass(memory),
        source_(std::move(source)),
        passes_(source_->datasets().size(), &memory),
        over_(passes_.size(), false, &memory),
        dealt_(num_replicas, &memory) {}

  Status begin() {
    for (std::size_t i = 0; i < passes_.size(); ++i) {
      DIST_TRY(source_->datasets()[i]->make_pass_for_one(&passes_[i]));
    }
    return kOk;
  }

  Status seek(const Position& position) override {
    start_all();
    if (!source_->one_for_each()) return passes_[0]->seek(position);
    for (const Ref<Pass>& pass : passes_) {
      for (int64_t left = position.batches; left > 0; --left) {
        ValueRef skipped;
        const Status status = pass->next_batch(&skipped);
        if (status.code() == DIST_OUT_OF_RANGE) break;
        DIST_TRY(status);
      }
    }
    steps_ = position.batches;
    return kOk;
  }

  Position position() const noexcept override {
    return source_->one_for_each() ? Position{0, 0, 0, steps_} : passes_[0]->position();
  }

  bool filled_up() const noexcept override { return filled_up_; }

  Status next_batch(ValueRef* out) override {
    start_all();
    Value* model = nullptr;
    bool incomplete = false;
    for (std::size_t r = 0; r < dealt_.size(); ++r) {
      dealt_[r] = {};
      DIST_TRY(deal(r));
      if (dealt_[r] && model == nullptr) model = dealt_[r].get();
      incomplete = incomplete || !dealt_[r];
    }
    if (model == nullptr) return pass_is_over();
    if (incomplete) DIST_TRY(fill_up(*model));
    filled_up_ = incomplete && source_->has_static_shapes() && !source_->fills_up();
    ++steps_;
    std::pmr::vector<Value*> components(&memory());
    components.reserve(dealt_.size());
    for (const ValueRef& one : dealt_) components.push_back(one.get());
    const Status status = join_components(memory(), components, out);
    std::fill(dealt_.begin(), dealt_.end(), ValueRef());
    return status;
  }

 private:
  void start_all() noexcept {
    for (const Ref<Pass>& pass : passes_) pass->start(number());
  }

  // Takes the next batch for replica `r`. There is none if the replica's pass has ended.
  Status deal(std::size_t r) {
    const std::size_t at = source_->one_for_each() ? r : 0;
    if (over_[at]) return kOk;
    const Status status = passes_[at]->next_batch(&dealt_[r]);
    over_[at] = status.code() == DIST_OUT_OF_RANGE;
    return over_[at] ? kOk : status;
  }

  // Completes the last step: replicas without a batch get an empty one. If a batch cannot be empty, the step
  // is dropped.
  Status fill_up(Value& model) {
    for (ValueRef& one : dealt_) {
      if (!one) DIST_TRY(empty_like(memory(), model, &one));
      if (!one) return pass_is_over();
    }
    return kOk;
  }

  const Ref<FunctionSource> source_;
  std::pmr::vector<Ref<Pass>> passes_;
  std::pmr::vector<bool> over_;       // for each pass
  std::pmr::vector<ValueRef> dealt_;  // for each replica, in the current step
  int64_t steps_ = 0;
  bool filled_up_ = false;
};

}  // namespace

FunctionSource::FunctionSource(Memory& memory, std::span<const Ref<Dataset>> datasets, int32_t num_replicas,
                               bool fills_up)
    : Source(memory),
      datasets_(datasets.begin(), datasets.end(), &memory),
      num_replicas_(num_replicas),
      fills_up_(fills_up) {}

FunctionSource::~FunctionSource() = default;

bool FunctionSource::has_static_shapes() const noexcept {
  return std::any_of(datasets_.begin(), datasets_.end(),
                     [](const Ref<Dataset>& dataset) { return dataset->has_static_shapes(); });
}

Status FunctionSource::make_pass(const Recipe&, Ref<Pass>* out) {
  Ref<FunctionPass> pass = make_counted<FunctionPass>(memory(), Ref<FunctionSource>::share(this),
                                                      static_cast<std::size_t>(num_replicas_));
  DIST_TRY(pass->begin());
  *out = Ref<Pass>::adopt(pass.take());
  return kOk;
}

Status FunctionSource::numbered(bool, int64_t, Ref<Source>*) {
  return fail(DIST_UNIMPLEMENTED,
              "the dataset was created from a function, so the shards of other workers are unknown. Check "
              "the datasets that the function creates.");
}

Status FunctionSource::model(ValueRef* out, bool* fixed) {
  *fixed = datasets_[0]->has_static_shapes();
  Ref<Pass> pass;
  DIST_TRY(datasets_[0]->make_pass_for_one(&pass));
  return pass->next_batch(out);
}

void FunctionSource::describe(char* text, std::size_t size) const noexcept {
  if (one_for_each()) {
    std::snprintf(text, size, "%zu datasets created by a function, one for each replica", datasets_.size());
  } else {
    copy_text(text, size, "a dataset created by a function");
  }
}

}  // namespace dist

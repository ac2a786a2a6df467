// SPDX-License-Identifier: Apache-2.0
#include "core/input/coverage.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

namespace dist {
namespace {

struct Read {
  std::array<int64_t, 3> example;  // file, element, example within the element
  int32_t worker;
};

bool earlier(const Read& a, const Read& b) noexcept { return a.example < b.example; }

// Collects the numbers that replicas have received: three per example.
void add_examples(const Value& batch, int32_t worker, std::pmr::vector<Read>& to) {
  if (batch.distributed()) {
    for (const ValueRef& component : batch.items()) add_examples(*component, worker, to);
    return;
  }
  const dist_tensor tensor = batch.tensor();
  int64_t n = 1;
  for (int32_t d = 0; d < tensor.ndim; ++d) n *= tensor.shape[d];
  const auto* numbers = static_cast<const int64_t*>(tensor.data);
  for (int64_t i = 0; i < n; i += 3) to.push_back({{numbers[i], numbers[i + 1], numbers[i + 2]}, worker});
}

Status read_pass(Pass& pass, int32_t worker, std::pmr::vector<Read>& to) {
  pass.start(0);
  for (;;) {
    ValueRef batch;
    const Status status = pass.next_batch(&batch);
    if (status.code() == DIST_OUT_OF_RANGE) return kOk;
    DIST_TRY(status);
    add_examples(*batch, worker, to);
  }
}

// Writes for example "element 5" or "element 5 of file 2, example 3", for messages.
void describe(const Read& read, bool files, bool batches, char* text, std::size_t size) noexcept {
  char file[40] = "";
  char example[40] = "";
  if (files) std::snprintf(file, sizeof file, " of file %lld", static_cast<long long>(read.example[0]));
  if (batches)
    std::snprintf(example, sizeof example, ", example %lld", static_cast<long long>(read.example[2]));
  std::snprintf(text, size, "element %lld%s%s", static_cast<long long>(read.example[1]), file, example);
}

}  // namespace

Status check_coverage(Dataset& dataset, int64_t limit) {
  if (limit < 0) {
    return invalid_argument("`dist_dataset_check_shards()`: `limit` is %lld, but must be 0 or more",
                            static_cast<long long>(limit));
  }
  DIST_TRY(dataset.check_process());
  const bool batches =
      dataset.options().global_batch_size == 0 && dataset.division().cut != Division::Cut::kWhole;
  Ref<Source> source;
  DIST_TRY(dataset.source().numbered(batches, limit, &source));
  const bool files = source->facts().has_files;

  Recipe all;
  all.division.batch = batches ? 0 : 1;
  Ref<Pass> pass;
  DIST_TRY(source->make_pass(all, &pass));
  std::pmr::vector<Read> there(&dataset.memory());
  DIST_TRY(read_pass(*pass, 0, there));
  std::sort(there.begin(), there.end(), earlier);

  std::pmr::vector<Read> read(&dataset.memory());
  const int32_t workers = std::max(dataset.options().num_workers, 1);
  for (int32_t worker = 0; worker < workers; ++worker) {
    DIST_TRY(dataset.make_pass_of(worker, *source, &pass));
    DIST_TRY(read_pass(*pass, worker, read));
  }
  std::stable_sort(read.begin(), read.end(), earlier);

  char what[128];
  auto at = read.begin();
  for (const Read& example : there) {
    describe(example, files, batches, what, sizeof what);
    if (at == read.end() || at->example != example.example) {
      return fail(DIST_DATA_LOSS, "no worker reads %s%s", what,
                  dataset.options().drop_remainder != 0
                      ? ": drop_remainder drops a last batch that is not full"
                      : "");
    }
    const auto next = at + 1;
    if (next != read.end() && next->example == example.example) {
      return fail(DIST_DATA_LOSS,
                  "%s is read by worker %d and by worker %d, because with this `shard_policy` workers read "
                  "the same elements",
                  what, at->worker, next->worker);
    }
    at = next;
  }
  return kOk;
}

}  // namespace dist

// SPDX-License-Identifier: Apache-2.0
#include "core/input/explain.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "core/base/text.hpp"

namespace dist {
namespace {

using Cut = Division::Cut;

constexpr int64_t kMostSizes = 16;  // maximum number of sizes that are listed

class Explainer {
 public:
  explicit Explainer(const Dataset& dataset)
      : dataset_(dataset),
        division_(dataset.division()),
        options_(dataset.options()),
        text_(&dataset.memory()) {}

  std::pmr::string explain() {
    char source[128];
    dataset_.source().describe(source, sizeof source);
    add("source: %s%s\n", source, options_.shuffle != 0 ? ", in a different order in every pass" : "");
    if (dataset_.is_of_function()) {
      explain_dealing();
    } else {
      explain_batches();
      explain_workers();
      explain_replicas();
    }
    explain_ahead();
    return std::move(text_);
  }

 private:
  [[gnu::format(printf, 2, 3)]] void add(const char* format, ...) {
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    text_ += line;
  }

  void explain_ahead() {
    if (!dataset_.measures_ahead()) {
      const auto prefetch = static_cast<long long>(dataset_.prefetch());
      add("prefetched: %lld batch%s\n", prefetch, prefetch == 1 ? "" : "es");
      return;
    }
    const AheadChoice choice = dataset_.ahead_choice();
    if (choice.in_place_ns() == 0) {
      add("prefetched: 1 batch, if measurements show that this is faster\n");
      return;
    }
    add("prefetched: %s; the time from one batch to the next was %s with one prefetched batch and %s with "
        "none\n",
        choice.chosen() ? "1 batch" : "none, because one does not make the loop faster",
        DurationText(choice.ahead_ns()).text, DurationText(choice.in_place_ns()).text);
  }

  void explain_dealing() {
    if (options_.replication_mode == DIST_INPUT_PER_REPLICA) {
      add("replicas: replica r of step k gets batch k of dataset r\n");
    } else {
      add("replicas: replica r of step k gets batch k * %d + r\n", dataset_.num_replicas());
    }
    if (dataset_.has_static_shapes() && dataset_.steps() == nullptr) {
      add("end: dist_iterator_next() omits a step in which a replica has no batch, because all batches have "
          "the same shape\n");
    } else {
      add("end: in a last step without enough batches, some replicas get empty batches\n");
    }
  }

  void explain_batches() {
    if (division_.sizes) {
      add("batches: cut to the given sizes, independent of the source's batches");
    } else if (division_.batch == 0) {
      add("batches: the source's elements, unchanged");
    } else {
      add("batches: %lld elements", static_cast<long long>(division_.batch));
    }
    if (division_.batch != 0 || division_.sizes) {
      add(division_.drop_remainder ? "; a last batch that is not full is dropped"
                                   : "; the last batch may be smaller");
    }
    add("\n");
  }

  void explain_workers() {
    const int32_t workers = std::max(options_.num_workers, 1);
    if (workers == 1) {
      add("workers: 1, which reads everything\n");
      return;
    }
    add("workers: %d; this is worker %d: ", workers, options_.worker_index);
    if (division_.files.step > 1) {
      add("it reads files %lld, %lld, ...", static_cast<long long>(division_.files.first),
          static_cast<long long>(division_.files.first) + division_.files.step);
    } else if (division_.elements.step > 1) {
      add("it reads elements %lld, %lld, ...", static_cast<long long>(division_.elements.first),
          static_cast<long long>(division_.elements.first) + division_.elements.step);
    } else if (division_.batches.step > 1) {
      add("it reads batches %lld, %lld, ...", static_cast<long long>(division_.batches.first),
          static_cast<long long>(division_.batches.first) + division_.batches.step);
    } else if (options_.as_one_process != 0) {
      add("each batch is divided among all workers, as in one process");
    } else if (division_.piece_step > 1 || division_.layout) {
      add("each batch is divided among all workers");
    } else {
      add("it reads everything, like all other workers");
    }
    add("\n");
  }

  void explain_replicas() {
    if (division_.cut == Cut::kWhole) {
      add("replicas: one, which gets whole batches\n");
    } else if (division_.cut == Cut::kEven) {
      add("replicas: a batch of m examples is cut into %lld pieces of ceil(m / %lld)\n",
          static_cast<long long>(division_.pieces), static_cast<long long>(division_.pieces));
      for (int64_t r = 0; r < division_.replicas; ++r) explain_piece(r);
    } else {
      add("replicas: replica r of step k gets piece k * %lld + r; sizes of pieces:",
          static_cast<long long>(division_.replicas));
      explain_sizes();
    }
  }

  void explain_piece(int64_t replica) {
    const int64_t piece = division_.piece(replica);
    add("  replica %lld: piece %lld", static_cast<long long>(replica), static_cast<long long>(piece));
    if (division_.batch != 0) {
      const Part part = part_of(division_.batch, division_.pieces, piece);
      if (part.count == 0) {
        add(", nothing of a full batch");
      } else {
        add(", elements %lld to %lld of a full batch", static_cast<long long>(part.first),
            static_cast<long long>(part.first + part.count - 1));
      }
    }
    add("\n");
  }

  void explain_sizes() {
    const int64_t cycle =
        division_.sizes ? static_cast<int64_t>(division_.sizes->all.size()) : division_.pieces;
    if (!division_.sizes && division_.batch == 0) {
      add(" those of the first element divided by %lld\n", static_cast<long long>(cycle));
      return;
    }
    for (int64_t i = 0; i < std::min(cycle, kMostSizes); ++i) {
      add(" %lld", static_cast<long long>(division_.size(i, 0)));
    }
    add("%s, and then again from the first\n", cycle > kMostSizes ? " ..." : "");
  }

  const Dataset& dataset_;
  const Division& division_;
  const DatasetOptions& options_;
  std::pmr::string text_;
};

}  // namespace

std::pmr::string explain(const Dataset& dataset) { return Explainer(dataset).explain(); }

}  // namespace dist

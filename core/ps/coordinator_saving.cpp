// SPDX-License-Identifier: Apache-2.0
// Coordinator: checkpoints of its variables. A checkpoint also contains the closures that each parameter
// server has applied, so that a coordinator that continues from it may run closures again whose effects are
// already included.
#include <charconv>
#include <cinttypes>
#include <cstring>
#include <utility>

#include "core/checkpoint/file_error.hpp"
#include "core/checkpoint/reader.hpp"
#include "core/checkpoint/writer.hpp"
#include "core/ps/applied_ids.hpp"
#include "core/ps/coordinator_parts.hpp"
#include "core/ps/numbers.hpp"
#include "core/ps/parameter_store.hpp"

namespace dist {
namespace {

constexpr char kWatermarkText[] = "libdist.ps.mark";
constexpr char kLayoutText[] = "libdist.ps.layout";

using Numbers = std::pmr::vector<int64_t>;

std::pmr::string applied_key(Memory& memory, std::size_t ps) {
  char key[48];
  std::snprintf(key, sizeof key, "libdist.ps.%zu.applied", ps);
  return {key, &memory};
}

std::pmr::string text_of(Memory& memory, std::span<const int64_t> numbers) {
  std::pmr::string text(&memory);
  for (const int64_t each : numbers) {
    char digits[24];
    std::snprintf(digits, sizeof digits, "%s%" PRId64, text.empty() ? "" : " ", each);
    text += digits;
  }
  return text;
}

Status numbers_of(const char* key, const char* text, Numbers* out) {
  const char* const end = text + std::strlen(text);
  while (text != end) {
    int64_t number = 0;
    const auto [at, error] = std::from_chars(text, end, number);
    if (error != std::errc() || (at != end && *at != ' ')) {
      return fail(DIST_DATA_LOSS, "\"%s\" in the checkpoint is not a list of numbers", key);
    }
    out->push_back(number);
    text = at == end ? end : at + 1;
  }
  return kOk;
}

// The layout: which server has which part of which variable.
std::pmr::string layout_of(Memory& memory, const Directory& directory, std::size_t n) {
  Numbers numbers(&memory);
  for (std::size_t i = 0; i < n; ++i) {
    const RemoteVariable& each = directory.at(i);
    numbers.push_back(static_cast<int64_t>(each.parts.size()));
    for (const RemoteVariable::Part& part : each.parts) numbers.push_back(part.ps);
  }
  return text_of(memory, numbers);
}

// The same set of closures as a list that starts at `watermark`.
Status from_watermark(Memory& memory, std::span<const int64_t> applied, int64_t watermark, Numbers* out) {
  AppliedIds ids(memory);
  DIST_TRY(ids.read(applied));
  ids.forget_below(watermark);
  ids.write(out);
  while (out->size() > 1 && out->back() == 0) out->pop_back();
  return kOk;
}

}  // namespace

// All variables of each server, as of one moment on that server.
class Coordinator::Snapshot {
 public:
  Snapshot(Coordinator& owner, RemoteWait* wait) : owner_(owner), wait_(wait) {}
  ~Snapshot() {
    try {
      ValueRef message;
      ValueRef ignored;
      if (!make_message(owner_.memory(), {owner_.epoch_}, {}, &message).ok()) return;
      for (std::size_t ps = 0; ps < taken_; ++ps) {
        (void)owner_.variables_.call(ps, "dist.ps.snapshot_end", *message, wait_, &ignored);
      }
    } catch (const std::bad_alloc&) {
      // The next snapshot replaces it.
    }
  }
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  // The closures applied by the next server.
  Status take(Numbers* applied) {
    ValueRef message;
    ValueRef answer;
    DIST_TRY(make_message(owner_.memory(), {owner_.epoch_}, {}, &message));
    DIST_TRY(owner_.variables_.call(taken_, "dist.ps.snapshot", *message, wait_, &answer));
    ++taken_;
    if (answer->kind() != DIST_VALUE_TENSOR || answer->tensor().dtype != DIST_I64 ||
        answer->tensor().ndim != 1) {
      return fail(DIST_DATA_LOSS, "parameter server %zu returned no list of closures", taken_ - 1);
    }
    const dist_tensor numbers = answer->tensor();
    const auto* const first = static_cast<const int64_t*>(numbers.data);
    applied->assign(first, first + numbers.shape[0]);
    return kOk;
  }

  Status read(const RemoteVariable& variable, ValueRef* out) {
    const bool whole = variable.parts.size() == 1;
    if (!whole) DIST_TRY(Value::copy_tensor(owner_.memory(), variable.spec(), out));
    for (const RemoteVariable::Part& part : variable.parts) {
      ValueRef message;
      ValueRef rows;
      DIST_TRY(make_message(owner_.memory(), {owner_.epoch_, part.number}, {}, &message));
      DIST_TRY(owner_.variables_.call(static_cast<std::size_t>(part.ps), "dist.ps.snapshot_read", *message,
                                      wait_, &rows));
      const std::size_t bytes = static_cast<std::size_t>(part.rows) * variable.row_bytes();
      if (rows->kind() != DIST_VALUE_TENSOR || rows->tensor().dtype != variable.dtype ||
          elements_of(rows->tensor()) * dtype_size(variable.dtype) != bytes) {
        return fail(DIST_DATA_LOSS,
                    "variable \"%s\": the parameter server has another variable with this number",
                    variable.name.c_str());
      }
      if (whole) {
        *out = std::move(rows);
      } else if (bytes != 0) {
        std::memcpy(static_cast<std::byte*>((*out)->tensor().data) +
                        static_cast<std::size_t>(part.begin) * variable.row_bytes(),
                    rows->tensor().data, bytes);
      }
    }
    return kOk;
  }

 private:
  Coordinator& owner_;
  RemoteWait* const wait_;
  std::size_t taken_ = 0;
};

Status Coordinator::save(const char* path) {
  DIST_TRY(check_not_dividing("saving a checkpoint"));
  DIST_TRY(await_servers());
  // Meanwhile no variable can be created, and there is only one snapshot at a time.
  const std::scoped_lock creating(creating_);
  // The watermark first: closures below it have ended and are therefore included.
  const int64_t watermark = numbers().watermark;
  RemoteWait wait = patience();
  Snapshot snapshot(*this, &wait);
  CheckpointWriter writer(memory());
  const std::size_t n = directory_.size();
  for (std::size_t i = 0; i < n; ++i) {
    const RemoteVariable& each = directory_.at(i);
    DIST_TRY(writer.add_tensor(each.name.c_str(), each.spec()));
  }
  for (std::size_t ps = 0; ps < variables_.num_servers(); ++ps) {
    Numbers applied(&memory());
    Numbers kept(&memory());
    DIST_TRY(snapshot.take(&applied));
    DIST_TRY(from_watermark(memory(), applied, watermark, &kept));
    DIST_TRY(writer.texts().add(applied_key(memory(), ps).c_str(), text_of(memory(), kept).c_str(), true));
  }
  char digits[24];
  std::snprintf(digits, sizeof digits, "%" PRId64, watermark);
  DIST_TRY(writer.texts().add(kWatermarkText, digits, true));
  DIST_TRY(writer.texts().add(kLayoutText, layout_of(memory(), directory_, n).c_str(), true));
  DIST_TRY(about_file(path, writer.create(path)));
  for (std::size_t i = 0; i < n; ++i) {
    ValueRef value;
    DIST_TRY(snapshot.read(directory_.at(i), &value));
    DIST_TRY(writer.write(i, value->tensor().data));
  }
  return about_file(path, writer.commit());
}

namespace {

// The progress of a job when it was saved.
struct Progress {
  explicit Progress(Memory& memory) : applied(&memory) {}

  int64_t watermark = 0;              // closures below have ended
  std::pmr::vector<Numbers> applied;  // by each parameter server, in the format of AppliedIds; at least one
  bool alike = true;                  // all are equal: no closure was running
};

Status read_progress(const Checkpoint& file, Progress* out) {
  Memory& memory = file.memory();
  // Files of other programs and of other strategies contain no closures.
  if (const char* const text = file.text(kWatermarkText); text != nullptr) {
    Numbers watermark(&memory);
    DIST_TRY(numbers_of(kWatermarkText, text, &watermark));
    if (watermark.size() != 1 || watermark[0] < 0 || watermark[0] > INT64_MAX / 2) {
      return fail(DIST_DATA_LOSS, "\"%s\" in the checkpoint is not a number of closures", kWatermarkText);
    }
    out->watermark = watermark[0];
  }
  for (std::size_t ps = 0;; ++ps) {
    const std::pmr::string key = applied_key(memory, ps);
    const char* const text = file.text(key.c_str());
    if (text == nullptr) break;
    DIST_TRY(numbers_of(key.c_str(), text, &out->applied.emplace_back()));
    out->alike = out->alike && out->applied.back() == out->applied.front();
  }
  if (out->applied.empty()) out->applied.emplace_back().push_back(out->watermark);
  return kOk;
}

}  // namespace

Status Coordinator::restore(const char* path) {
  DIST_TRY(check_not_dividing("restoring a checkpoint"));
  DIST_TRY(await_servers());
  const std::scoped_lock creating(creating_);
  {
    const std::scoped_lock lock(mutex_);
    if (queue_.next_id() != 0) {
      return failed_precondition(
          "a checkpoint must be restored before the first closure is scheduled, but this coordinator has "
          "scheduled %lld",
          static_cast<long long>(queue_.next_id()));
    }
  }
  Ref<Checkpoint> file;
  DIST_TRY(about_file(path, Checkpoint::open(memory(), path, &file)));
  const std::size_t n = directory_.size();
  std::pmr::vector<FoundTensor> found(n, &memory());
  for (std::size_t i = 0; i < n; ++i) {
    const RemoteVariable& variable = directory_.at(i);
    DIST_TRY(file->find(variable.name.c_str(), &found[i]));
    const dist_tensor spec = found[i].spec();
    if (spec.dtype == variable.dtype && same_shape(spec, variable.spec())) continue;
    char is[160];
    char wanted[160];
    describe(spec, is, sizeof is);
    describe(variable.spec(), wanted, sizeof wanted);
    return invalid_argument("variable \"%s\" is %s, but in the checkpoint it is %s", variable.name.c_str(),
                            wanted, is);
  }
  Progress progress(memory());
  DIST_TRY(read_progress(*file, &progress));
  const char* const layout = file->text(kLayoutText);
  if (!progress.alike && (progress.applied.size() != variables_.num_servers() || layout == nullptr ||
                          layout_of(memory(), directory_, n) != layout)) {
    return failed_precondition(
        "the checkpoint was written while closures were running, and its variables were divided over the "
        "parameter servers in another way. Create the variables in the same way on %zu servers, or save "
        "after `dist_coordinator_join()`.",
        progress.applied.size());
  }
  RemoteWait wait = patience();
  for (std::size_t ps = 0; ps < variables_.num_servers(); ++ps) {
    Numbers numbers({epoch_}, &memory());
    const Numbers& has = progress.applied[progress.alike ? 0 : ps];
    numbers.insert(numbers.end(), has.begin(), has.end());
    ValueRef message;
    ValueRef ignored;
    DIST_TRY(make_message(memory(), numbers, {}, &message));
    DIST_TRY(variables_.call(ps, "dist.ps.restore", *message, &wait, &ignored));
  }
  for (std::size_t i = 0; i < n; ++i) {
    ValueRef value;
    DIST_TRY(file->read(found[i], &value));
    Pushes pushes(memory(), variables_.num_servers());
    DIST_TRY(pushes.assign(directory_.at(i), DIST_ASSIGN, *value));
    DIST_TRY(commit(pushes));
  }
  const std::scoped_lock lock(mutex_);
  queue_.resume(progress.watermark);
  return kOk;
}

}  // namespace dist

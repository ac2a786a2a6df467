// SPDX-License-Identifier: Apache-2.0
#include "recorder.hpp"

#include <algorithm>
#include <atomic>

#include "settle.hpp"

namespace golden::transcript {
namespace {

std::atomic<Log*> open_log{nullptr};
// The callback that this thread is in. A thread of libdist is in none until libdist calls one on it.
thread_local Line* in_function = nullptr;

}  // namespace

Log::Log(std::string area, std::string id) {
  case_.area = std::move(area);
  case_.id = std::move(id);
  in_function = &case_.root;
  open_log = this;
}

Log::~Log() {
  open_log = nullptr;
  in_function = nullptr;
  for (dist_value* value : retained_) dist_value_release(value);
}

Log* Log::current() noexcept { return Looking::now() ? nullptr : open_log.load(); }

Log::Scope::Scope(Line* function) noexcept : before_(std::exchange(in_function, function)) {}
Log::Scope::~Scope() { in_function = before_; }

// Values are retained until the case ends, so that no other value can have their address.
std::string Log::add(char kind, const void* object) {
  numbers_[object] = kinds_.size();
  kinds_.push_back(kind);
  if (kind == 'v')
    retained_.push_back(dist_value_retain(const_cast<dist_value*>(static_cast<const dist_value*>(object))));
  return reference(kinds_.size() - 1);
}

std::string Log::known(char kind, const void* object) {
  const std::lock_guard lock(mutex_);
  const auto at = numbers_.find(object);
  if (at != numbers_.end()) return reference(at->second);
  fault_ = std::string("an object that came from nowhere: ") + kind;
  return "?";
}

std::string Log::comes(char kind, const void* object, std::string_view, bool fresh) {
  const std::lock_guard lock(mutex_);
  if (kind == 'v') see(object);
  const auto at = numbers_.find(object);
  // An object that libdist has destroyed may have had the same address and another kind.
  const bool is_new = at == numbers_.end() || kinds_[at->second] != kind || (fresh && kind != 'v');
  return is_new ? add(kind, object) : reference(at->second);
}

void Log::see(const void* value) {
  dist_tensor view;
  const auto* const tensor = static_cast<const dist_value*>(value);
  if (dist_value_kind_of(tensor) == DIST_VALUE_TENSOR && dist_value_tensor(tensor, &view) == DIST_OK) {
    seen_[value] = literal_of(view);
  }
}

bool Log::is_news(const dist_value* value, const std::string& literal) {
  const std::lock_guard lock(mutex_);
  return std::exchange(seen_[value], literal) != literal;
}

Line* Log::call(std::string name) {
  if (in_function == nullptr) {
    fault("a call on a thread that is in no function: " + name);
    return invocation(&case_.root, name.c_str());
  }
  return in_function->add(std::move(name));
}

Line* Log::invocation(Line* of, const char* kind) {
  const std::lock_guard lock(mutex_);
  return of->add(kind);
}

Function* Log::keep(Line* call, void (*fn)(), void* user_data) {
  const std::lock_guard lock(mutex_);
  functions_.push_back({this, call, fn, user_data, nullptr, {}});
  return &functions_.back();
}

void Log::forget(const void* object) {
  const std::lock_guard lock(mutex_);
  numbers_.erase(object);
}

void Log::drop(Line* line) {
  const std::lock_guard lock(mutex_);
  std::erase_if(line->above->below, [&](const auto& one) { return one.get() == line; });
}

void Log::fault(const std::string& what) {
  const std::lock_guard lock(mutex_);
  fault_ = what;
}

std::string Log::end(std::string* out_fault, std::size_t* out_lines) {
  open_log = nullptr;
  *out_fault = fault_;
  if (!fault_.empty()) return "";
  settle(case_.root, kinds_);
  *out_lines = count(case_.root);
  return to_text(case_);
}

}  // namespace golden::transcript

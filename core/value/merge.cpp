// SPDX-License-Identifier: Apache-2.0
// merge() combines R results into one value; component_of() returns one replica's part of a value.
#include <algorithm>
#include <cstring>

#include "core/value/nest.hpp"
#include "core/value/path.hpp"
#include "core/value/value.hpp"

namespace dist {
namespace {

using Results = std::span<Value* const>;

class Merger {
 public:
  Merger(Memory& memory, bool keep_same, const char* source) noexcept
      : memory_(memory), source_(source), keep_same_(keep_same) {}

  Status merge(Results results, const Path& path, ValueRef* out) {
    if (keep_same_ && all_same(results)) {
      *out = ValueRef::share(results[0]);
      return kOk;
    }
    DIST_TRY(check_level(results, path));
    if (results[0]->is_nest()) {
      return map_columns(
          memory_, results, path,
          [this](Results column, const Path& here, ValueRef* made) { return merge(column, here, made); },
          out);
    }
    return Value::create(memory_, DIST_VALUE_PER_REPLICA, results, out);
  }

  Status check(Results results, const Path& path) const {
    DIST_TRY(check_level(results, path));
    if (!results[0]->is_nest()) return kOk;
    return each_column(memory_, results, path,
                       [this](std::size_t, Results column, const Path& here) { return check(column, here); });
  }

 private:
  // Whether all results are the same object, handles of the same variable, or "nothing".
  static bool all_same(Results results) noexcept {
    const Value& first = *results[0];
    return std::all_of(results.begin(), results.end(), [&first](const Value* value) {
      const bool same_variable = value->variable() != nullptr && value->variable() == first.variable();
      return value == &first || same_variable || (value->is_none() && first.is_none());
    });
  }

  Status differ(Results results, std::size_t replica, const Path& path) const noexcept {
    char first[256];
    char other[256];
    Value::describe(results[0], first, sizeof first);
    Value::describe(results[replica], other, sizeof other);
    return invalid_argument(
        "%s: %s 0 has %s, but %s %zu has %s. Only values of the same structure can be merged.",
        PathText(path).c_str(), source_, first, source_, replica, other);
  }

  Status check_kinds(Results results, const Path& path) const noexcept {
    for (std::size_t r = 0; r < results.size(); ++r) {
      if (results[r]->distributed()) {
        return invalid_argument(
            "%s: %s %zu has %s, but each %s must pass its own part, or all of them the same object",
            PathText(path).c_str(), source_, r, Value::kind_name(results[r]->kind()), source_);
      }
      const bool nests = results[r]->is_nest() || results[0]->is_nest();
      if (nests && results[r]->kind() != results[0]->kind()) return differ(results, r, path);
    }
    return kOk;
  }

  Status check_level(Results results, const Path& path) const noexcept {
    DIST_TRY(check_kinds(results, path));
    return results[0]->is_nest() ? check_items(results, path) : kOk;
  }

  // Checks that nests have the same number of items and the same keys.
  Status check_items(Results results, const Path& path) const noexcept {
    const Value& first = *results[0];
    for (std::size_t r = 1; r < results.size(); ++r) {
      const Value& other = *results[r];
      const std::size_t n = std::min(first.items().size(), other.items().size());
      for (std::size_t i = 0; first.kind() == DIST_VALUE_DICT && i < n; ++i) {
        const int order = std::strcmp(first.key(i), other.key(i));
        if (order == 0) continue;
        // Keys are sorted, so the lesser of the two keys is missing from the other replica's dictionary.
        return invalid_argument(
            "%s: %s %zu has the key \"%s\", but %s %zu does not. All must have the same keys.",
            PathText(path).c_str(), source_, order < 0 ? std::size_t{0} : r,
            order < 0 ? first.key(i) : other.key(i), source_, order < 0 ? r : std::size_t{0});
      }
      if (first.items().size() != other.items().size()) return differ(results, r, path);
    }
    return kOk;
  }

  Memory& memory_;
  const char* const source_;
  bool keep_same_;
};

}  // namespace

Status merge(Memory& memory, std::span<Value* const> results, const char* what, ValueRef* out,
             const char* source) {
  if (std::find(results.begin(), results.end(), nullptr) == results.end()) {
    return Merger(memory, true, source).merge(results, Path{what}, out);
  }
  if (std::all_of(results.begin(), results.end(), [](const Value* value) { return value == nullptr; })) {
    *out = ValueRef();
    return kOk;
  }
  const ValueRef none = Value::create_none(memory);
  std::pmr::vector<Value*> given(results.begin(), results.end(), &memory);
  std::replace(given.begin(), given.end(), static_cast<Value*>(nullptr), none.get());
  return Merger(memory, true, source).merge(given, Path{what}, out);
}

Status check_alike(Memory& memory, std::span<Value* const> components, const Path& path) {
  return Merger(memory, false, "replica").check(components, path);
}

Status merge_leaves(Memory& memory, std::span<Value* const> components, const char* what, ValueRef* out) {
  return Merger(memory, false, "replica").merge(components, Path{what}, out);
}

Status component_of(Memory& memory, Value* value, LocalReplica replica, ValueRef* out) {
  if (value == nullptr || !value->holds_distributed()) {
    *out = ValueRef::share(value);
    return kOk;
  }
  const std::span<const ValueRef> items = value->items();
  if (value->distributed()) {
    if (index(replica) >= items.size()) {
      return invalid_argument(
          "%s has %zu components, but none for replica %zu: it was created for another strategy",
          Value::kind_name(value->kind()), items.size(), index(replica));
    }
    *out = items[index(replica)];
    return kOk;
  }
  std::pmr::vector<ValueRef> components(items.size(), &memory);
  std::pmr::vector<Value*> pointers(items.size(), &memory);
  for (std::size_t i = 0; i < items.size(); ++i) {
    DIST_TRY(component_of(memory, items[i].get(), replica, &components[i]));
    pointers[i] = components[i].get();
  }
  return Value::create_like(memory, *value, pointers, out);
}

}  // namespace dist

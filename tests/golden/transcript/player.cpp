// SPDX-License-Identifier: Apache-2.0
#include "player.hpp"

#include <algorithm>

#include <dist/tf.h>
#include "calls.hpp"
#include "tests/golden/harness/json.hpp"

namespace golden::transcript {
namespace {

constexpr std::size_t kShown = 300;  // maximum bytes of a literal in a message

std::string shown(const std::string* literal) {
  return literal == nullptr ? "nothing" : decode_text(literal->substr(0, literal->find('%', kShown)));
}

void destroy(char kind, void* object) {
  switch (kind) {
    case 's':
      if (dist_strategy_destroy(static_cast<dist_strategy*>(object)) != DIST_OK)
        std::fprintf(stderr, "%s\n", dist_last_error());
      break;
    case 'x': dist_variable_destroy(static_cast<dist_variable*>(object)); break;
    case 'd': dist_dataset_destroy(static_cast<dist_dataset*>(object)); break;
    case 'i': dist_iterator_destroy(static_cast<dist_iterator*>(object)); break;
    case 't': dist_topology_destroy(static_cast<dist_topology*>(object)); break;
    case 'p': dist_cluster_spec_destroy(static_cast<dist_cluster_spec*>(object)); break;
    case 'q': dist_cluster_resolver_destroy(static_cast<dist_cluster_resolver*>(object)); break;
    case 'n': dist_network_destroy(static_cast<dist_network*>(object)); break;
    case 'a': dist_device_assignment_destroy(static_cast<dist_device_assignment*>(object)); break;
    default: dist_cross_device_destroy(static_cast<dist_cross_device*>(object)); break;
  }
}

}  // namespace

std::vector<std::string> Player::play() {
  if (perform_below(case_.root)) check_all_played(case_.root, false);
  end();
  return faults_;
}

bool Player::perform_below(const Line& function) {
  for (const auto& line : function.below) {
    try {
      perform(*line);
    } catch (const Malformed& malformed) {
      fault(*line, malformed.what);
      return false;
    }
  }
  return true;
}

void Player::perform(const Line& line) {
  const Perform* const perform = find_call(line.name);
  if (perform == nullptr) throw Malformed{"a function that is not known"};
  (*perform)(*this, line);
}

void Player::check_all_played(const Line& line, bool call) {
  for (const auto& below : line.below) {
    if (call && below->name != "source" && below->name != "file" && !played_.contains(below.get())) {
      fault(*below, "the function has not been called");
    }
    check_all_played(*below, !call);
  }
}

void Player::end() {
  for (auto name = owned_.rbegin(); name != owned_.rend(); ++name) destroy(name->front(), objects_.at(*name));
  for (dist_value* value : values_) dist_value_release(value);
}

void* Player::object(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto at = objects_.find(name);
  if (at == objects_.end()) throw Malformed{"\"" + name + "\" is no object (yet)"};
  return at->second;
}

std::string Player::name_of(const void* object) {
  const std::lock_guard lock(mutex_);
  const auto at = names_.find(object);
  return at == names_.end() ? "an object without a name" : at->second;
}

bool Player::bind(const std::string& name, void* object, bool anew) {
  const std::lock_guard lock(mutex_);
  const auto [at, is_new] = objects_.try_emplace(name, object);
  if (!is_new && at->second != object && !anew) return false;
  at->second = object;
  names_[object] = name;
  return true;
}

void Player::forget(const std::string& name) {
  const std::lock_guard lock(mutex_);
  std::erase(owned_, name);
}

void Player::own(const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (std::find(owned_.begin(), owned_.end(), name) == owned_.end()) owned_.push_back(name);
}

void Player::release_later(dist_value* value) {
  const std::lock_guard lock(mutex_);
  values_.push_back(value);
}

Played* Player::function(const Line& call) {
  const std::lock_guard lock(mutex_);
  functions_.push_back(std::make_unique<Played>(Played{this, &call}));
  return functions_.back().get();
}

void Player::fault(const Line& line, const std::string& what) {
  const std::lock_guard lock(mutex_);
  faults_.push_back(case_.area + " " + case_.id + ", line " + std::to_string(line.number) + ", " + line.name +
                    ": " + what);
}

void Player::compare(const Line& line, const Fields& expected, const Fields& came) {
  for (const Field& field : expected) {
    const std::string* const literal = find(came, field.key);
    if (literal != nullptr && (field.value == "?" || *literal == field.value)) continue;
    fault(line, field.key + " is " + shown(literal) + ", expected " + shown(&field.value));
  }
  for (const Field& field : came) {
    if (find(expected, field.key) == nullptr)
      fault(line, field.key + " is " + shown(&field.value) + ", expected nothing");
  }
}

}  // namespace golden::transcript

// SPDX-License-Identifier: Apache-2.0
// The state of a Replay. Only replay.cpp, values.cpp, encode.cpp and play.cpp access it.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "replay.hpp"

namespace golden {

struct Replay::State {
  rapidjson::Document document;  // owns the memory of all JSON of the case
  Json description;
  Json inputs;
  Json recorded{rapidjson::kObjectType};

  Strategy owned;
  dist_strategy* strategy = nullptr;
  Strategy for_values;  // where the case has no strategy

  std::recursive_mutex mutex;  // values are made on the replicas' threads too
  std::map<std::string, Value> interned;

  // Whose memory values take.
  dist_strategy* memory_of(Replay& replay);
};

}  // namespace golden

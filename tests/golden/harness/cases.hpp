// SPDX-License-Identifier: Apache-2.0
// The recorded cases of a directory: each *.json file is one area. Files are read and checked completely
// before anything runs. An invalid file causes the exception Malformed, which names it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "json.hpp"

namespace golden {

// How the recorded program ended.
enum class End { kExpected, kError, kHang, kCrash };

struct Case {
  std::string id;
  const Json* strategy;
  const Json* inputs;
  End end;
  const Json* outcome;     // the member of that name
  const Json* afterwards;  // or NULL
};

// One file. Cases point into its document.
struct Area {
  std::string name;
  std::string file;
  std::unique_ptr<rapidjson::Document> document;
  std::vector<Case> cases;
};

// Returns the areas of a directory, in the order of their file names. If an area has several files, each
// counts as an area.
std::vector<Area> load_directory(const std::string& directory);

}  // namespace golden

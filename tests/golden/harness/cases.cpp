// SPDX-License-Identifier: Apache-2.0
#include "cases.hpp"

#include <rapidjson/error/en.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

namespace golden {
namespace {

constexpr int kDeepest = 100;  // maximum number of levels in a file, so that recursive functions do not
                               // exhaust the stack

// Checks the text, because RapidJSON's own functions recurse.
void check_depth(const std::string& text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepest) throw Malformed{"nested deeper than " + std::to_string(kDeepest)};
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
}

const Json& object_member(const Json& object, const char* key) {
  const Json& found = member(object, key);
  if (!found.IsObject()) throw Malformed{"\"" + std::string(key) + "\" is no object"};
  return found;
}

Case case_of(const Json& json) {
  if (!json.IsObject()) throw Malformed{"a case is no object"};
  const Json& id = member(json, "id");
  if (!id.IsString()) throw Malformed{"\"id\" is no text"};
  Case one{std::string(text_of(id)),
           &object_member(json, "strategy"),
           &object_member(json, "inputs"),
           End::kExpected,
           nullptr,
           find(json, "afterwards")};
  static constexpr std::pair<const char*, End> kEnds[] = {
      {"expected", End::kExpected}, {"error", End::kError}, {"hang", End::kHang}, {"crash", End::kCrash}};
  for (const auto& [key, end] : kEnds) {
    if (find(json, key) == nullptr) continue;
    if (one.outcome != nullptr) throw Malformed{"case \"" + one.id + "\" has two outcomes"};
    one.end = end;
    one.outcome = end == End::kExpected ? &member(json, key) : &object_member(json, key);
  }
  if (one.outcome == nullptr) throw Malformed{"case \"" + one.id + "\" has no outcome"};
  return one;
}

// A case may name a topology. It then gets the device_coordinates of this topology, which are inputs of the
// case "topology/NAME".
void add_topologies(rapidjson::Document& document) {
  Json& cases = document["cases"];
  std::map<std::string_view, const Json*> topologies;
  constexpr std::string_view kPrefix = "topology/";
  for (const Json& json : cases.GetArray()) {
    const std::string_view id = text_of(member(json, "id"));
    if (id.starts_with(kPrefix)) topologies[id.substr(kPrefix.size())] = &member(json, "inputs");
  }
  for (Json& json : cases.GetArray()) {
    Json& inputs = json["inputs"];
    const Json* const name = find(inputs, "topology");
    if (name == nullptr || !name->IsString()) continue;
    const auto found = topologies.find(text_of(*name));
    if (found == topologies.end()) continue;
    Json copy(member(*found->second, "device_coordinates"), document.GetAllocator());
    inputs.AddMember("device_coordinates", copy, document.GetAllocator());
  }
}

Area parse(const std::string& text) {
  check_depth(text);
  Area area;
  area.document = std::make_unique<rapidjson::Document>();
  constexpr unsigned kFlags = rapidjson::kParseFullPrecisionFlag | rapidjson::kParseIterativeFlag;
  area.document->Parse<kFlags>(text.data(), text.size());
  if (area.document->HasParseError()) {
    throw Malformed{std::string(rapidjson::GetParseError_En(area.document->GetParseError())) + " At byte " +
                    std::to_string(area.document->GetErrorOffset())};
  }
  if (!area.document->IsObject()) throw Malformed{"is no object"};
  area.name = text_of(member(*area.document, "area"));
  std::set<std::string_view> ids;
  for (const Json& json : member(*area.document, "cases").GetArray()) {
    area.cases.push_back(case_of(json));
    if (!ids.insert(text_of(json["id"])).second) {
      throw Malformed{"case \"" + area.cases.back().id + "\" is there twice"};
    }
  }
  add_topologies(*area.document);
  return area;
}

Area load_file(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(stream), {});
  if (!stream) throw Malformed{path.string() + ": cannot be read"};
  try {
    Area area = parse(text);
    area.file = path.filename().string();
    return area;
  } catch (const Malformed& error) {
    throw Malformed{path.string() + ": " + error.what};
  }
}

}  // namespace

std::vector<Area> load_directory(const std::string& directory) {
  std::error_code error;
  std::vector<std::filesystem::path> paths;
  for (std::filesystem::directory_iterator at(directory, error), end; !error && at != end;
       at.increment(error)) {
    if (at->path().extension() == ".json") paths.push_back(at->path());
  }
  if (error) throw Malformed{directory + ": " + error.message()};
  if (paths.empty()) throw Malformed{directory + ": holds no *.json file"};
  std::sort(paths.begin(), paths.end());
  std::vector<Area> areas;
  for (const std::filesystem::path& path : paths) areas.push_back(load_file(path));
  return areas;
}

}  // namespace golden

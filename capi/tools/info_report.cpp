// SPDX-License-Identifier: Apache-2.0
#include "capi/tools/info_report.hpp"

#include <dirent.h>
#include <dist/dist.h>
#include <dlfcn.h>
#include <link.h>
#include <sys/resource.h>
#include <sys/timex.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "capi/tools/info_text.hpp"
#include "core/base/os/affinity.hpp"
#include "core/base/os/cgroup.hpp"
#include "core/base/os/clock.hpp"
#include "core/base/os/cpus.hpp"
#include "core/kernel/targets.hpp"
#include "core/net/link_modules.hpp"

namespace dist::info {
namespace {

// ---- The library and its modules ----

std::string version_text() {
  const int32_t version = dist_version();
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

std::string library_file() {
  Dl_info found;
  if (dladdr(reinterpret_cast<const void*>(&dist_version), &found) == 0 || found.dli_fname == nullptr)
    return "";
  return one_line(found.dli_fname);
}

struct FileSearch {
  std::string end;  // "/libdist-grpc.so"
  std::string found;
};

int match_file(dl_phdr_info* info, std::size_t, void* data) {
  auto& search = *static_cast<FileSearch*>(data);
  const std::string name = info->dlpi_name;
  if (!name.ends_with(search.end)) return 0;
  search.found = name;
  return 1;
}

std::string file_name_of(const std::string& module) { return "libdist-" + module + ".so"; }

// The file of a module that the library has loaded.
std::string loaded_file(const std::string& module) {
  FileSearch search{"/" + file_name_of(module), ""};
  dl_iterate_phdr(match_file, &search);
  return search.found;
}

Available ask_feature(const char* name, const char* without) {
  Available feature{name, dist_has_feature(name) == 1, "", ""};
  if (!feature.is_available) feature.why = without != nullptr ? without : api_error();
  return feature;
}

// Adds the names and files of the modules in a folder.
void list_modules(std::string folder, std::map<std::string, std::string>* out) {
  constexpr std::size_t kMost = 64;
  constexpr std::string_view kBegin = "libdist-";
  constexpr std::string_view kEnd = ".so";
  DIR* const listing = opendir(folder.c_str());
  if (listing == nullptr) return;
  folder += '/';
  while (const dirent* const entry = readdir(listing)) {
    const std::string file = entry->d_name;
    if (!file.starts_with(kBegin) || !file.ends_with(kEnd) || file.size() < kBegin.size() + kEnd.size())
      continue;
    std::string name = file.substr(kBegin.size(), file.size() - kBegin.size() - kEnd.size());
    if (name != "grpc" && name != "gloo" && is_link_module_name(name.c_str()) && out->size() < kMost)
      out->emplace(std::move(name), folder + file);
  }
  closedir(listing);
}

// The link modules beside that of gRPC and in DIST_MODULE_FOLDER, which DIST_TRANSPORT can name. They are
// loaded only by a job that uses them.
void add_link_modules(const std::string& grpc_file, std::vector<Available>* out) {
  constexpr std::size_t kMostFolders = 64;
  std::map<std::string, std::string> found;
  list_modules(grpc_file.substr(0, grpc_file.rfind('/')), &found);
  const char* const others = getenv("DIST_MODULE_FOLDER");
  std::istringstream folders(others != nullptr ? others : "");
  std::string folder;
  for (std::size_t i = 0; i < kMostFolders && std::getline(folders, folder, ':'); ++i)
    list_modules(folder, &found);
  for (const auto& [name, file] : found) out->push_back({name, true, one_line(file), ""});
}

void find_modules(Report* out) {
  std::string grpc_file;
  for (const char* const name : {"grpc", "gloo"}) {
    Available module = ask_feature(name, nullptr);
    const std::string file = module.is_available ? loaded_file(name) : "";
    module.file = one_line(file);
    if (std::strcmp(name, "grpc") == 0) grpc_file = file;
    out->modules.push_back(std::move(module));
  }
  // Workers find each other over gRPC, whatever moves their data.
  if (grpc_file.empty()) return;
  add_link_modules(grpc_file, &out->modules);
  out->transports.push_back("shm");
  for (const Available& module : out->modules) {
    if (module.is_available) out->transports.push_back(module.name);
  }
}

// ---- The machine ----

void count_places(Cpus* out) {
  dist_topology* topology = nullptr;
  if (dist_topology_from_host(nullptr, &topology) != DIST_OK) return;
  const auto rank = static_cast<std::size_t>(dist_topology_mesh_rank(topology));
  const int32_t* const all = dist_topology_device_coordinates(topology);
  const auto devices = static_cast<std::size_t>(dist_topology_num_devices_per_task(topology));
  // By package, NUMA domain in it, and core in that (topology.h).
  const auto count = [&](std::size_t levels) {
    std::set<std::vector<int32_t>> places;
    for (std::size_t i = 0; i < devices && levels <= rank; ++i)
      places.emplace(all + i * rank, all + i * rank + levels);
    return static_cast<int>(places.size());
  };
  out->packages = count(1);
  out->numa_domains = count(2);
  out->cores = count(3);
  dist_topology_destroy(topology);
}

Cpus find_cpus() {
  Cpus found;
  char list[256] = "";
  found.allowed = allowed_cpus();
  list_cpus(cpus_of_this_thread(), list);
  found.list = list;
  found.quota = cgroup_cpu_quota("");
  found.usable = usable_cpus(found.allowed, found.quota);
  count_places(&found);
  found.cache_bytes = last_level_cache_bytes();
  return found;
}

Clock find_clock() {
  Clock found;
  std::ifstream file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  std::getline(file, found.source);
  found.source = one_line(found.source.substr(0, 64));
  found.is_counter_steady = time_counter_is_steady();
  constexpr int64_t kReadings = 1000;
  const int64_t begin_ns = steady_now_ns();
  for (int64_t i = 1; i < kReadings; ++i) (void)steady_now_ns();
  found.read_ns = (steady_now_ns() - begin_ns) / kReadings;
  timex state = {};
  const int answer = adjtimex(&state);
  found.is_synchronized = answer >= 0 && answer != TIME_ERROR;
  return found;
}

std::vector<Limit> find_limits() {
  std::vector<Limit> found;
  constexpr std::pair<const char*, decltype(RLIMIT_NOFILE)> kLimits[] = {
      {"NOFILE", RLIMIT_NOFILE}, {"NPROC", RLIMIT_NPROC}, {"MEMLOCK", RLIMIT_MEMLOCK}};
  for (const auto& [name, number] : kLimits) {
    rlimit limit;
    if (getrlimit(number, &limit) != 0) continue;
    found.push_back(
        {name, limit.rlim_cur == RLIM_INFINITY ? std::nullopt : std::optional<uint64_t>(limit.rlim_cur)});
  }
  return found;
}

std::vector<std::string> find_environment() {
  std::vector<std::string> found;
  for (const char* const name :
       {"TF_CONFIG", "DIST_BIND_ADDRESS", "DIST_JOB_NAME", "DIST_JOB_SECRET", "DIST_LEASE_SECONDS",
        "DIST_MODULE_FOLDER", "DIST_PLAINTEXT", "DIST_RANK", "DIST_RENDEZVOUS", "DIST_REPLICAS", "DIST_SIZE",
        "DIST_TLS_CA", "DIST_TLS_CERTIFICATE", "DIST_TLS_KEY", "DIST_TRANSPORT"}) {
    if (getenv(name) != nullptr) found.push_back(name);
  }
  return found;
}

// ---- Text ----

std::string size_text(std::size_t bytes) {
  return bytes % (1u << 20) == 0 ? std::to_string(bytes >> 20) + " MiB"
                                 : std::to_string(bytes >> 10) + " KiB";
}

std::string quota_text(double quota) {
  if (quota <= 0) return "no quota";
  char text[48];
  std::snprintf(text, sizeof text, "quota %.3g", quota);
  return text;
}

void add_line(std::string* text, const std::string& label, const std::string& words) {
  constexpr std::size_t kColumn = 20;
  std::string line = label + ":";
  line.resize(std::max(line.size() + 1, kColumn), ' ');
  *text += line + words + "\n";
}

std::string text_of(const Available& each) {
  if (!each.is_available) return "no: " + each.why;
  return each.file.empty() ? "yes" : each.file;
}

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& each : words) text += (text.empty() ? "" : ", ") + each;
  return text.empty() ? "none" : text;
}

std::string text_of(const Cpus& cpus) {
  return std::to_string(cpus.usable) + " usable: " + std::to_string(cpus.allowed) + " allowed (" + cpus.list +
         "), " + quota_text(cpus.quota);
}

std::string text_of(const Clock& clock) {
  return (clock.source.empty() ? "unknown source" : clock.source) + ", " + std::to_string(clock.read_ns) +
         " ns per reading, time-stamp counter " + (clock.is_counter_steady ? "steady" : "not steady") + ", " +
         (clock.is_synchronized ? "synchronized" : "not synchronized");
}

std::string text_of(const std::vector<Limit>& limits) {
  std::vector<std::string> words;
  for (const Limit& each : limits)
    words.push_back(std::string(each.name) + " " + (each.most ? std::to_string(*each.most) : "unlimited"));
  return join(words);
}

// ---- JSON ----

void write_json(const char* key, const std::vector<Available>& list, JsonWriter& json) {
  json.Key(key);
  json.StartArray();
  for (const Available& each : list) {
    json.StartObject();
    write_text(json, "name", each.name);
    json.Key("available");
    json.Bool(each.is_available);
    write_text(json, "file", each.file);
    write_text(json, "reason", each.why);
    json.EndObject();
  }
  json.EndArray();
}

void write_json(const char* key, const std::vector<std::string>& list, JsonWriter& json) {
  json.Key(key);
  json.StartArray();
  for (const std::string& each : list) json.String(each.c_str());
  json.EndArray();
}

void write_number(JsonWriter& json, const char* key, uint64_t number) {
  json.Key(key);
  json.Uint64(number);
}

void write_json(const Cpus& cpus, JsonWriter& json) {
  json.Key("cpus");
  json.StartObject();
  for (const auto& [key, number] :
       {std::pair{"usable", cpus.usable}, std::pair{"allowed", cpus.allowed},
        std::pair{"packages", cpus.packages}, std::pair{"numa_domains", cpus.numa_domains},
        std::pair{"cores", cpus.cores}}) {
    json.Key(key);
    json.Int(number);
  }
  write_text(json, "list", cpus.list);
  json.Key("quota");
  cpus.quota > 0 ? json.Double(cpus.quota) : json.Null();
  write_number(json, "last_level_cache_bytes", cpus.cache_bytes);
  json.EndObject();
}

void write_json(const Clock& clock, JsonWriter& json) {
  json.Key("clock");
  json.StartObject();
  write_text(json, "source", clock.source);
  json.Key("read_ns");
  json.Int64(clock.read_ns);
  json.Key("counter_steady");
  json.Bool(clock.is_counter_steady);
  json.Key("synchronized");
  json.Bool(clock.is_synchronized);
  json.EndObject();
}

void write_json(const Cluster& cluster, JsonWriter& json) {
  json.Key("cluster");
  json.StartObject();
  write_text(json, "source", cluster.source);
  write_number(json, "tasks", cluster.num_tasks);
  write_text(json, "self", cluster.self);
  write_text(json, "error", cluster.error);
  json.EndObject();
}

}  // namespace

const Limit* Report::limit(const char* name) const {
  for (const Limit& each : limits) {
    if (std::strcmp(each.name, name) == 0) return &each;
  }
  return nullptr;
}

Report make_report() {
  Report report;
  report.version = version_text();
  report.library = library_file();
  report.features.push_back(ask_feature("numa", "libdist was built without hwloc (-Dnuma=disabled)"));
  report.features.push_back(ask_feature("pinning", "this version of libdist does not have it"));
  report.features.push_back(ask_feature("isal", "libdist was built without ISA-L (-Disal)"));
  find_modules(&report);
  report.cpus = find_cpus();
  report.simd = kernel_targets()[0];
  report.clock = find_clock();
  report.limits = find_limits();
  report.cluster = find_cluster();
  report.environment = find_environment();
  return report;
}

std::string text_of(const Report& report) {
  std::string text;
  add_line(&text, "version", report.version);
  add_line(&text, "library", report.library);
  for (const Available& each : report.features) add_line(&text, "feature " + each.name, text_of(each));
  for (const Available& each : report.modules) add_line(&text, "module " + each.name, text_of(each));
  add_line(&text, "transports", join(report.transports));
  add_line(&text, "cpus", text_of(report.cpus));
  add_line(&text, "numa",
           count_of(report.cpus.numa_domains, "domain") + ", " + count_of(report.cpus.packages, "package") +
               ", " + count_of(report.cpus.cores, "core") + ", last-level cache " +
               size_text(report.cpus.cache_bytes));
  add_line(&text, "simd", report.simd);
  add_line(&text, "clock", text_of(report.clock));
  add_line(&text, "limits", text_of(report.limits));
  add_line(&text, "cluster", report.cluster.text());
  add_line(&text, "environment", join(report.environment));
  return text;
}

void write_text(JsonWriter& json, const char* key, const std::string& text) {
  json.Key(key);
  text.empty() ? json.Null() : json.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
}

void write_json(const Report& report, JsonWriter& json) {
  write_text(json, "version", report.version);
  write_text(json, "library", report.library);
  write_json("features", report.features, json);
  write_json("modules", report.modules, json);
  write_json("transports", report.transports, json);
  write_json(report.cpus, json);
  write_text(json, "simd", report.simd);
  write_json(report.clock, json);
  json.Key("limits");
  json.StartObject();
  for (const Limit& each : report.limits) {
    json.Key(each.name);
    each.most ? json.Uint64(*each.most) : json.Null();
  }
  json.EndObject();
  write_json(report.cluster, json);
  write_json("environment", report.environment, json);
}

}  // namespace dist::info

// SPDX-License-Identifier: Apache-2.0
// /proc/self/cgroup contains the path of the own group in each hierarchy, and /proc/self/mountinfo specifies
// which part of the hierarchy is mounted, and where. In a container the two may not match: the
// group's path may be the host's path, or lie outside the mounted part. In these cases only the mounted part
// can be read.
#include "core/base/os/cgroup.hpp"

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace dist {
namespace {

using std::string_view;

constexpr std::size_t kMostPath = 4096 + 256;  // the kernel's limit plus a file name
constexpr std::size_t kMostLine = 2 * kMostPath;

// Reads a small text file line by line. A line of `size` or more bytes is skipped as a whole.
template <std::size_t size>
class Lines {
 public:
  explicit Lines(const char* path) noexcept : file_(std::fopen(path, "re")) {}
  ~Lines() {
    if (file_ != nullptr) std::fclose(file_);
  }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  bool next(string_view* line) noexcept {
    if (file_ == nullptr) return false;
    bool whole = true;
    while (std::fgets(text_, sizeof text_, file_) != nullptr) {
      const std::size_t length = std::strcspn(text_, "\n");
      const bool ends = text_[length] == '\n' || std::feof(file_) != 0;
      if (ends && whole) {
        *line = {text_, length};
        return true;
      }
      whole = ends;
    }
    return false;
  }

 private:
  std::FILE* file_;
  char text_[size];
};

// Removes and returns the part of `rest` before `separator`, or all of it if there is none.
string_view take(string_view* rest, char separator) noexcept {
  const std::size_t end = rest->find(separator);
  const string_view word = rest->substr(0, end);
  rest->remove_prefix(end == string_view::npos ? rest->size() : end + 1);
  return word;
}

bool has_word(string_view list, string_view word) noexcept {
  while (!list.empty()) {
    if (take(&list, ',') == word) return true;
  }
  return false;
}

// Parses a decimal number; 0 for "max", malformed text, and numbers that do not fit in 64 bits.
int64_t number_in(string_view text) noexcept {
  int64_t number = 0;
  const char* const end = text.data() + text.size();
  return std::from_chars(text.data(), end, number).ptr == end ? number : 0;
}

// Quotas that are not positive mean that there is no quota: version 1 uses -1.
void keep_least(double quota, double* least) noexcept {
  if (quota > 0 && (*least == 0 || quota < *least)) *least = quota;
}

// The path of a folder, extended and shortened in place.
class Path {
 public:
  bool append(string_view part) noexcept {
    if (part.size() >= sizeof text_ - size_) return false;
    std::memcpy(text_ + size_, part.data(), part.size());
    cut(size_ + part.size());
    return true;
  }
  // Decodes mountinfo's escapes: \040 is a space.
  bool append_decoded(string_view part) noexcept {
    while (!part.empty()) {
      unsigned code = 0;
      const bool escaped = part.size() >= 4 && part[0] == '\\' &&
                           std::from_chars(part.data() + 1, part.data() + 4, code, 8).ptr == part.data() + 4;
      const char decoded = escaped ? static_cast<char>(code) : part[0];
      if (!append({&decoded, 1})) return false;
      part.remove_prefix(escaped ? 4 : 1);
    }
    return true;
  }
  void cut(std::size_t size) noexcept { text_[size_ = size] = '\0'; }
  string_view view() const noexcept { return {text_, size_}; }
  const char* c_str() const noexcept { return text_; }

 private:
  std::size_t size_ = 0;
  char text_[kMostPath] = "";
};

// Reads the first line of a file in `folder`, which is restored afterwards.
int64_t read_numbers(Path* folder, string_view file, int64_t* second) noexcept {
  const std::size_t size = folder->view().size();
  int64_t first = 0;
  if (folder->append(file)) {
    Lines<128> lines(folder->c_str());
    string_view line;
    if (lines.next(&line)) {
      first = number_in(take(&line, ' '));
      if (second != nullptr) *second = number_in(line);
    }
  }
  folder->cut(size);
  return first;
}

double quota_of(Path* folder, bool v2) noexcept {
  int64_t period = 0;
  int64_t quota;
  if (v2) {
    quota = read_numbers(folder, "/cpu.max", &period);
  } else {
    quota = read_numbers(folder, "/cpu.cfs_quota_us", nullptr);
    period = read_numbers(folder, "/cpu.cfs_period_us", nullptr);
  }
  return period > 0 ? static_cast<double>(quota) / static_cast<double>(period) : 0;
}

// The smallest quota from `folder` up to the mount point, which is its first `top` characters. The rest
// begins with a slash.
double least_quota(Path* folder, std::size_t top, bool v2) noexcept {
  double least = 0;
  for (;;) {
    keep_least(quota_of(folder, v2), &least);
    if (folder->view().size() <= top) return least;
    folder->cut(folder->view().rfind('/'));
  }
}

// A mounted hierarchy with CPU quotas, from a line of mountinfo.
struct Mount {
  bool v2;
  string_view part;   // the part of the hierarchy that is mounted
  string_view point;  // the mount point
};

// id parent device PART POINT options [optional fields] - TYPE source OPTIONS
bool parse_mount(string_view line, Mount* mount) noexcept {
  for (int i = 0; i < 3; ++i) take(&line, ' ');
  mount->part = take(&line, ' ');
  mount->point = take(&line, ' ');
  while (!line.empty() && take(&line, ' ') != "-") {
  }
  const string_view type = take(&line, ' ');
  take(&line, ' ');
  mount->v2 = type == "cgroup2";
  return mount->v2 || (type == "cgroup" && has_word(line, "cpu"));
}

// Whether a path, as seen from within a cgroup namespace, leads out of that namespace.
bool leads_out(string_view path) noexcept {
  while (!path.empty()) {
    if (take(&path, '/') == "..") return true;
  }
  return false;
}

// Whether `group` is visible at a mount of `part`, and its path below the mount: "/a/b" in "/a" is "/b".
bool seen_at(string_view part, string_view group, string_view* below) noexcept {
  if (leads_out(part) || leads_out(group)) return false;
  if (part == "/") part = "";
  if (group == "/") group = "";
  *below = group.substr(group.size() < part.size() ? group.size() : part.size());
  return group.substr(0, part.size()) == part && (below->empty() || below->front() == '/');
}

// The quota of a group at a mount. If the group is not visible there, the quota of the mount itself.
bool quota_at(const char* root, const Mount& mount, string_view group, double* quota) noexcept {
  Path part;
  Path folder;
  if (!part.append_decoded(mount.part) || !folder.append(root) || !folder.append_decoded(mount.point))
    return false;
  const std::size_t top = folder.view().size();
  string_view below;
  const bool seen = seen_at(part.view(), group, &below) && folder.append(below);
  *quota = least_quota(&folder, top, mount.v2);
  return seen;
}

double quota_in_hierarchy(const char* root, bool v2, string_view group) noexcept {
  Path mountinfo;
  if (!mountinfo.append(root) || !mountinfo.append("/proc/self/mountinfo")) return 0;
  Lines<kMostLine> lines(mountinfo.c_str());
  string_view line;
  Mount mount;
  double quota;
  double of_group = 0;
  double of_mounts = 0;
  bool mounted = false;
  bool seen = false;
  while (lines.next(&line)) {
    if (!parse_mount(line, &mount) || mount.v2 != v2) continue;
    if (quota_at(root, mount, group, &quota)) {
      seen = true;
      keep_least(quota, &of_group);
    } else if (!mounted) {
      of_mounts = quota;  // only the first mount counts: others may be mounts of other groups
    }
    mounted = true;
  }
  if (!mounted) quota_at(root, {v2, "/", v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu"}, group, &of_mounts);
  return seen ? of_group : of_mounts;
}

}  // namespace

double cgroup_cpu_quota(const char* root) noexcept {
  Path path;
  if (!path.append(root) || !path.append("/proc/self/cgroup")) return 0;
  Lines<kMostLine> lines(path.c_str());
  string_view line;
  double least = 0;
  while (lines.next(&line)) {
    take(&line, ':');  // hierarchy:controllers:group
    const string_view controllers = take(&line, ':');
    const bool v2 = controllers.empty();
    if (line.empty() || line.front() != '/' || (!v2 && !has_word(controllers, "cpu"))) continue;
    keep_least(quota_in_hierarchy(root, v2, line), &least);
  }
  return least;
}

}  // namespace dist

// SPDX-License-Identifier: Apache-2.0
// The foundations of checkpoint files: the checksum, and system calls that are interrupted by signals,
// complete only partly, or fail. The linker redirects system calls to the __wrap_ functions.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "core/base/os/file.hpp"
#include "core/base/tensor.hpp"
#include "core/checkpoint/crc32.hpp"
#include "core/checkpoint/dtypes.hpp"
#include "tests/enums.h"
#include "tests/unit/each_value.hpp"
#include "tests/unit/plain_error.hpp"

// Last: its macro fail() would hide dist::fail().
#include <setjmp.h>
#include <stdarg.h>

extern "C" {
#include <cmocka.h>
}

namespace {

// How the system behaves in the following calls.
struct System {
  int interrupted = 0;   // how often each call is interrupted before it does anything
  std::size_t most = 0;  // maximum number of bytes of one read or write; 0 = no limit
  int fail_at = -1;      // the index, counted over all kinds of calls, of the call that fails
  int error = 0;         // its error
  int calls = 0;
  int left_to_interrupt = 0;
};
System system_now;

// Returns whether the call must return -1 with errno set.
bool hindered() {
  if (system_now.left_to_interrupt > 0) {
    --system_now.left_to_interrupt;
    errno = EINTR;
    return true;
  }
  system_now.left_to_interrupt = system_now.interrupted;
  if (system_now.calls++ != system_now.fail_at) return false;
  errno = system_now.error;
  return true;
}

std::size_t shortened(std::size_t bytes) {
  return system_now.most == 0 ? bytes : std::min(bytes, system_now.most);
}

void begin(const System& system) {
  system_now = system;
  system_now.left_to_interrupt = system.interrupted;
}

}  // namespace

extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier): the linker's names
ssize_t __real_pread64(int file, void* to, size_t bytes, off64_t at);
ssize_t __real_pwrite64(int file, const void* from, size_t bytes, off64_t at);
int __real_fsync(int file);
int __real_renameat(int from_folder, const char* from, int to_folder, const char* to);

ssize_t __wrap_pread64(int file, void* to, size_t bytes, off64_t at) {
  return hindered() ? -1 : __real_pread64(file, to, shortened(bytes), at);
}
ssize_t __wrap_pwrite64(int file, const void* from, size_t bytes, off64_t at) {
  return hindered() ? -1 : __real_pwrite64(file, from, shortened(bytes), at);
}
int __wrap_fsync(int file) { return hindered() ? -1 : __real_fsync(file); }
int __wrap_renameat(int from_folder, const char* from, int to_folder, const char* to) {
  // rename() is not interrupted by signals.
  system_now.left_to_interrupt = 0;
  return hindered() ? -1 : __real_renameat(from_folder, from, to_folder, to);
}
// NOLINTEND(bugprone-reserved-identifier)
}

namespace dist {
namespace {

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/dist-file-XXXXXX";
    assert_non_null(mkdtemp(name));
    path_ = name;
  }
  ~Folder() {
    for (const std::string& name : names()) unlink((path_ + "/" + name).c_str());
    rmdir(path_.c_str());
  }
  std::string path(const char* name) const { return path_ + "/" + name; }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    DIR* const folder = opendir(path_.c_str());
    while (const dirent* const entry = readdir(folder)) {
      if (entry->d_name[0] != '.' || std::strlen(entry->d_name) > 2) all.emplace_back(entry->d_name);
    }
    closedir(folder);
    return all;
  }

 private:
  std::string path_;
};

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Replaces the file at the path by "new...", and writes the second half first.
Status replace(const std::string& path, const std::string& text) {
  NewFile file;
  DIST_TRY(file.create(path.c_str()));
  const std::size_t half = text.size() / 2;
  DIST_TRY(file.write_at(static_cast<int64_t>(half), text.data() + half, text.size() - half));
  DIST_TRY(file.write_at(0, text.data(), half));
  return file.commit();
}

void crc32_is_that_of_zlib(void**) {
  assert_int_equal(crc32(0, "", 0), 0);
  assert_int_equal(crc32(0, "a", 1), 0xE8B7BE43);
  assert_int_equal(crc32(0, "123456789", 9), 0xCBF43926);
  std::string text;
  for (int i = 0; i < 1000; ++i) text.push_back(static_cast<char>(i * 7));
  assert_int_equal(crc32(0, text.data(), text.size()), 0x114AD5FF);
  // The result does not depend on where the data are split, or on their alignment.
  for (std::size_t cut = 0; cut < 100; ++cut)
    assert_int_equal(crc32(crc32(0, text.data(), cut), text.data() + cut, text.size() - cut), 0x114AD5FF);
}

void crc32_is_the_same_with_isa_l_and_without(void**) {
  std::string data;
  uint32_t state = 1;
  for (int i = 0; i < 70000; ++i) {
    state = state * 1664525 + 1013904223;
    data.push_back(static_cast<char>(state >> 24));
  }
  // The number of bytes that are processed at a time depends on the length and the alignment.
  for (std::size_t bytes = 0; bytes < 700; ++bytes) {
    const char* const at = data.data() + bytes % 67;
    assert_int_equal(crc32(state, at, bytes), crc32_by_tables(state, at, bytes));
  }
  for (const std::size_t bytes : {4095, 4096, 65537, 69000})
    assert_int_equal(crc32(7, data.data() + 3, bytes), crc32_by_tables(7, data.data() + 3, bytes));
}

void every_dtype_has_a_name(void**) {
  int known = 0;
  for (dist_dtype dtype{-1}; dtype < 40; ++dtype) {
    const StoredDtype* const stored = stored_dtype(dtype);
    assert_int_equal(stored != nullptr, dtype_size(dtype) != 0);
    if (stored == nullptr) continue;
    ++known;
    assert_int_equal(stored->bits, 8 * dtype_size(dtype));
    assert_ptr_equal(stored_dtype(std::string_view(stored->name)), stored);
  }
  assert_int_equal(known, LAST_DTYPE);
  assert_null(stored_dtype(std::string_view("F31")));
}

void interrupted_and_short_calls_go_on(void**) {
  const Folder folder;
  const std::string path = folder.path("file"), text(1000, 'x'), end = "the end";
  begin({.interrupted = 2, .most = 7});
  assert_true(replace(path, text + end).ok());
  assert_true(system_now.calls > 1000 / 7);  // the linker has redirected the calls
  begin({});
  assert_true(contents(path) == text + end);
  InputFile file;
  begin({.interrupted = 3, .most = 5});
  assert_true(file.open(path.c_str()).ok());
  assert_int_equal(file.size(), 1007);
  std::string got(1007, ' ');
  assert_true(file.read_at(0, got.data(), got.size()).ok());
  assert_true(system_now.calls > 1000 / 5);
  assert_true(got == text + end);
  assert_int_equal(file.read_at(1000, got.data(), 8).code(), DIST_DATA_LOSS);
  assert_string_equal(last_message(), "ends at byte 1007, but should have 1 more bytes: it was truncated");
  begin({.fail_at = 0, .error = EIO});
  assert_int_equal(file.read_at(0, got.data(), 8).code(), DIST_DATA_LOSS);
  assert_string_equal(last_message(), "cannot be read: Input/output error");
  begin({});
}

// Whichever call fails, the folder contains either the complete old file or, after the rename, the complete
// new one, and nothing else.
void every_call_fails_once(void**) {
  const Folder folder;
  const std::string path = folder.path("file");
  assert_true(replace(path, "old").ok());
  const struct {
    int call;
    int error;
    dist_status status;
    const char* message;
    const char* left;
  } rows[] = {
      {0, ENOSPC, DIST_RESOURCE_EXHAUSTED, "cannot be written: No space left on device", "old"},
      {1, EDQUOT, DIST_RESOURCE_EXHAUSTED, "cannot be written: Disk quota exceeded", "old"},
      {2, EIO, DIST_DATA_LOSS, "cannot be written to the disk: Input/output error", "old"},
      {3, EACCES, DIST_PERMISSION_DENIED, "cannot be moved to its final name: Permission denied", "old"},
      {3, EBUSY, DIST_UNAVAILABLE, "cannot be moved to its final name: Device or resource busy", "old"},
      {4, EINVAL, DIST_OK, "", "new!"},
      {4, EIO, DIST_DATA_LOSS,
       "is in its place, but its folder cannot be written to the disk: Input/output error", "new!"},
  };
  for (const auto& row : rows) {
    begin({.fail_at = row.call, .error = row.error});
    const Status status = replace(path, "new!");
    begin({});
    assert_int_equal(status.code(), row.status);
    if (!status.ok()) assert_string_equal(last_message(), row.message);
    assert_string_equal(contents(path).c_str(), row.left);
    assert_int_equal(folder.names().size(), 1);
  }
}

// Offsets beyond 32 bits; the file is sparse.
void offsets_are_wide(void**) {
  const Folder folder;
  const std::string path = folder.path("file");
  constexpr int64_t kFar = int64_t{5} << 30;
  NewFile file;
  assert_true(file.create(path.c_str()).ok());
  assert_true(file.write_at(kFar, "far", 3).ok());
  assert_true(file.commit().ok());
  InputFile input;
  char got[4] = "";
  assert_true(input.open(path.c_str()).ok());
  assert_int_equal(input.size(), kFar + 3);
  assert_true(input.read_at(kFar, got, 3).ok());
  assert_string_equal(got, "far");
}

}  // namespace
}  // namespace dist

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(dist::crc32_is_that_of_zlib),
      cmocka_unit_test(dist::crc32_is_the_same_with_isa_l_and_without),
      cmocka_unit_test(dist::every_dtype_has_a_name),
      cmocka_unit_test(dist::interrupted_and_short_calls_go_on),
      cmocka_unit_test(dist::every_call_fails_once),
      cmocka_unit_test(dist::offsets_are_wide),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

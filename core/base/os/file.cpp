// SPDX-License-Identifier: Apache-2.0
#include "core/base/os/file.hpp"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <new>

#include "core/base/os/clock.hpp"
#include "core/base/os/quiet_writes.hpp"

namespace dist {
namespace {

dist_status status_of(int error) noexcept {
  switch (error) {
    case ENOENT:
    case ENOTDIR: return DIST_NOT_FOUND;
    case EACCES:
    case EPERM:
    case EROFS: return DIST_PERMISSION_DENIED;
    case ENOMEM:
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE: return DIST_RESOURCE_EXHAUSTED;
    case EISDIR:
    case EINVAL:
    case ELOOP:
    case ENAMETOOLONG:
    case ENODEV:
    case ENXIO: return DIST_INVALID_ARGUMENT;
    case EIO: return DIST_DATA_LOSS;
    default: return DIST_UNAVAILABLE;
  }
}

// "cannot be opened: No such file or directory"
Status system_error(const char* what, int error) noexcept {
  char buffer[128] = "";
  return fail(status_of(error), "%s: %s", what, strerror_r(error, buffer, sizeof buffer));
}

// Retries a call that a signal has interrupted.
template <class Call>
auto uninterrupted(const Call& call) noexcept {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

Status not_regular(mode_t mode) noexcept {
  const char* const is = S_ISDIR(mode)    ? "a folder"
                         : S_ISFIFO(mode) ? "a FIFO"
                         : S_ISSOCK(mode) ? "a socket"
                                          : "a device";
  return invalid_argument("is %s, but must be a regular file", is);
}

// The length of a path's folder, including the last '/'.
std::size_t folder_bytes(const char* path) noexcept {
  const char* const slash = std::strrchr(path, '/');
  return slash == nullptr ? 0 : static_cast<std::size_t>(slash + 1 - path);
}

// Opens the folder of a path. If the result is not open, errno is set.
Descriptor open_folder_of(const char* path) noexcept {
  char folder[4096] = ".";  // the system accepts no longer path
  const std::size_t length = folder_bytes(path);
  if (length >= sizeof folder) {
    errno = ENAMETOOLONG;
    return {};
  }
  if (length != 0) {
    std::memcpy(folder, path, length);
    folder[length] = '\0';
  }
  return Descriptor(uninterrupted([&] { return ::open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
}

}  // namespace

bool follow_links(const char* path, char* to, std::size_t size) noexcept {
  char* const found = ::realpath(path, nullptr);
  const bool fits = found != nullptr && std::strlen(found) < size;
  std::snprintf(to, size, "%s", fits ? found : path);
  std::free(found);
  return fits;
}

uint64_t unpredictable_number() noexcept {
  uint64_t number = 0;
  if (getrandom(&number, sizeof number, GRND_NONBLOCK) == sizeof number) return number;
  // Just after boot the random generator may not be seeded. O_EXCL protects existing files whatever the name
  // is.
  return static_cast<uint64_t>(steady_now_ns()) ^ static_cast<uint64_t>(getpid()) << 40;
}

Descriptor always_readable() {
  Descriptor made(eventfd(1, EFD_CLOEXEC));
  if (made.number() < 0) throw std::bad_alloc();
  return made;
}

int Descriptor::close() noexcept {
  if (number_ < 0) return 0;
  // Linux closes the descriptor even on EINTR; a second close() might close another thread's new file.
  const int result = ::close(std::exchange(number_, -1));
  return result == 0 || errno == EINTR ? 0 : errno;
}

Status InputFile::open(const char* path) noexcept {
  // O_NONBLOCK: otherwise this would wait for a FIFO's writer. It has no effect on regular files.
  Descriptor file(uninterrupted([&] { return ::open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); }));
  if (!file.is_open()) return system_error("cannot be opened", errno);
  struct stat about;
  if (fstat(file.number(), &about) != 0) return system_error("cannot be inspected", errno);
  if (!S_ISREG(about.st_mode)) return not_regular(about.st_mode);
  file_ = std::move(file);
  size_ = about.st_size;
  return kOk;
}

Status InputFile::read_at(int64_t offset, void* to, std::size_t bytes) const noexcept {
  auto* at = static_cast<std::byte*>(to);
  while (bytes > 0) {
    const ssize_t got = uninterrupted([&] { return pread(file_.number(), at, bytes, offset); });
    if (got < 0) return system_error("cannot be read", errno);
    if (got == 0) {
      return fail(DIST_DATA_LOSS,
                  "ends at byte %" PRId64 ", but should have %zu more bytes: it was truncated", offset,
                  bytes);
    }
    at += got;
    offset += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return kOk;
}

Status InputFile::map(MappedFile* out) const noexcept {
  struct stat about;
  if (fstat(file_.number(), &about) != 0) return system_error("cannot be inspected", errno);
  if (about.st_size < size_) {
    return fail(DIST_DATA_LOSS, "has %" PRId64 " bytes, but had %" PRId64 " before: it was truncated",
                static_cast<int64_t>(about.st_size), size_);
  }
  MappedFile made;
  if (size_ > 0) {
    void* const at = mmap(nullptr, static_cast<std::size_t>(size_), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_NORESERVE, file_.number(), 0);
    if (at == MAP_FAILED) return system_error("cannot be mapped", errno);
    made.data_ = static_cast<std::byte*>(at);
    made.bytes_ = static_cast<std::size_t>(size_);
  }
  *out = std::move(made);
  return kOk;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

std::size_t peek(const char* path, void* to, std::size_t bytes) noexcept {
  const Descriptor file(
      uninterrupted([&] { return ::open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); }));
  if (!file.is_open()) return 0;
  struct stat about;
  if (fstat(file.number(), &about) != 0 || !S_ISREG(about.st_mode)) return 0;
  const ssize_t got = uninterrupted([&] { return pread(file.number(), to, bytes, 0); });
  return got < 0 ? 0 : static_cast<std::size_t>(got);
}

void remove_beside(const char* path, PickFile picked, const void* with) noexcept {
  Descriptor opened = open_folder_of(path);
  DIR* const entries = opened.is_open() ? fdopendir(opened.number()) : nullptr;
  if (entries == nullptr) return;
  const int folder = opened.release();  // closedir() closes it
  while (const dirent* const entry = readdir(entries)) {
    struct stat about;
    if (picked(with, entry->d_name) && fstatat(folder, entry->d_name, &about, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(about.st_mode)) {
      unlinkat(folder, entry->d_name, 0);
    }
  }
  closedir(entries);
}

NewFile::~NewFile() {
  if (own_name_[0] != '\0') unlinkat(folder_.number(), own_name_, 0);
}

Status NewFile::open_folder() noexcept {
  name_ = path_ + folder_bytes(path_);
  if (*name_ == '\0')
    return invalid_argument("is not a file name: it %s", *path_ == '\0' ? "is empty" : "ends with '/'");
  folder_ = open_folder_of(path_);
  return folder_.is_open() ? kOk : system_error("its folder cannot be opened", errno);
}

Status NewFile::create(const char* path) noexcept {
  path_ = path;
  DIST_TRY(open_folder());
  struct stat about;
  if (fstatat(folder_.number(), name_, &about, AT_SYMLINK_NOFOLLOW) == 0) {
    if (!S_ISREG(about.st_mode) && !S_ISLNK(about.st_mode)) return not_regular(about.st_mode);
  } else if (errno != ENOENT) {
    return system_error("cannot be written", errno);
  }
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    char name[sizeof own_name_];
    std::snprintf(name, sizeof name, ".dist-%016" PRIx64 ".tmp", unpredictable_number());
    file_ = Descriptor(uninterrupted([&] {
      return openat(folder_.number(), name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    }));
    if (file_.is_open()) {
      std::memcpy(own_name_, name, sizeof name);
      return kOk;
    }
    if (errno != EEXIST) break;
  }
  return system_error("cannot create a file in its folder", errno);
}

Status NewFile::write_at(int64_t offset, const void* data, std::size_t bytes) noexcept {
  const auto* from = static_cast<const std::byte*>(data);
  const QuietWrites quiet;
  while (bytes > 0) {
    const ssize_t put = uninterrupted([&] { return pwrite(file_.number(), from, bytes, offset); });
    if (put <= 0) return system_error("cannot be written", put < 0 ? errno : EIO);
    from += put;
    offset += put;
    bytes -= static_cast<std::size_t>(put);
  }
  return kOk;
}

Status NewFile::commit() noexcept {
  if (uninterrupted([&] { return fsync(file_.number()); }) != 0)
    return system_error("cannot be written to the disk", errno);
  if (const int error = file_.close(); error != 0) return system_error("cannot be written", error);
  if (renameat(folder_.number(), own_name_, folder_.number(), name_) != 0)
    return system_error("cannot be moved to its final name", errno);
  own_name_[0] = '\0';
  in_place_ = true;
  // Some file systems do not support this for folders and return EINVAL.
  if (uninterrupted([&] { return fsync(folder_.number()); }) != 0 && errno != EINVAL)
    return system_error("is in its place, but its folder cannot be written to the disk", errno);
  return kOk;
}

}  // namespace dist

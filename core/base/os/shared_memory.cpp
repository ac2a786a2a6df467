// SPDX-License-Identifier: Apache-2.0
#include "core/base/os/shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace dist {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;

Status no_memory(const char* what) noexcept {
  return fail(DIST_RESOURCE_EXHAUSTED, "%s failed: %s", what, std::strerror(errno));
}

}  // namespace

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

Status SharedMemory::map(int descriptor, std::size_t bytes) noexcept {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor, 0);
  if (at == MAP_FAILED) return no_memory("mapping shared memory");
  // A forked child must not take part in the exchange.
  madvise(at, bytes, MADV_DONTFORK);
  data_ = static_cast<std::byte*>(at);
  bytes_ = bytes;
  return kOk;
}

Status SharedMemory::create(std::size_t bytes, Descriptor* out_descriptor) noexcept {
  Descriptor made(memfd_create("dist-shm", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!made.is_open()) return no_memory("memfd_create()");
  int error;
  do error = fallocate(made.number(), 0, 0, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
  while (error == EINTR);
  errno = error;
  if (error != 0) return no_memory("allocating shared memory");
  if (fcntl(made.number(), F_ADD_SEALS, kSeals | F_SEAL_SEAL) != 0) return no_memory("sealing shared memory");
  DIST_TRY(map(made.number(), bytes));
  *out_descriptor = std::move(made);
  return kOk;
}

Status SharedMemory::open(const Descriptor& descriptor, std::size_t bytes) noexcept {
  const int seals = fcntl(descriptor.number(), F_GET_SEALS);
  struct stat status {};
  if (seals < 0 || (seals & kSeals) != kSeals || fstat(descriptor.number(), &status) != 0 ||
      status.st_size != static_cast<off_t>(bytes)) {
    return failed_precondition("the shared memory has another size or can change its size");
  }
  return map(descriptor.number(), bytes);
}

bool read_process(int64_t process, uint64_t address, void* to, std::size_t bytes) noexcept {
  auto* at = static_cast<std::byte*>(to);
  while (bytes != 0) {
    const iovec mine{at, bytes};
    const iovec theirs{reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)), bytes};
    const ssize_t came = process_vm_readv(static_cast<pid_t>(process), &mine, 1, &theirs, 1, 0);
    if (came <= 0) return false;
    at += came;
    address += static_cast<uint64_t>(came);
    bytes -= static_cast<std::size_t>(came);
  }
  return true;
}

}  // namespace dist

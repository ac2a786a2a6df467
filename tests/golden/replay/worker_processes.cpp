// SPDX-License-Identifier: Apache-2.0
#include "worker_processes.hpp"

#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "tests/golden/harness/handles.hpp"

namespace golden {
namespace {

constexpr int kLongestMs = 40'000;  // longest time without a line

void must(bool works, const char* what) {
  if (!works) throw std::system_error(errno, std::generic_category(), what);
}

void write_all(int to, const char* bytes, std::size_t size) {
  while (size != 0) {
    const ssize_t n = write(to, bytes, size);
    if (n < 0 && errno == EINTR) continue;
    must(n > 0, "write");
    bytes += n;
    size -= static_cast<std::size_t>(n);
  }
}

}  // namespace

void ToParent::say(const std::string& line) const { write_all(to_, (line + "\n").data(), line.size() + 1); }

void ToParent::listen() const {
  char word = 0;
  while (read(from_, &word, 1) < 0 && errno == EINTR) {
  }
}

WorkerProcess::WorkerProcess(const std::function<int(const ToParent&)>& body) {
  int lines[2];
  int words[2];
  must(pipe(lines) == 0, "pipe");
  must(pipe(words) == 0, "pipe");
  std::fflush(nullptr);
  pid_ = fork();
  must(pid_ >= 0, "fork");
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // the process that plays the case may be killed
    close(lines[0]);
    close(words[1]);
    int code = 1;
    try {
      code = body(ToParent(words[0], lines[1]));
    } catch (const Failed& failed) {
      std::fprintf(stderr, "a worker's process: %s\n", failed.message.c_str());
    } catch (...) {
      std::fprintf(stderr, "a worker's process cannot go on\n");
    }
    _exit(code);
  }
  close(lines[1]);
  close(words[0]);
  from_ = lines[0];
  to_ = words[1];
}

WorkerProcess::~WorkerProcess() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    end();
  }
  close(from_);
  close(to_);
}

std::string WorkerProcess::next() {
  for (;;) {
    if (const std::size_t end = buffer_.find('\n'); end != buffer_.npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    pollfd one{from_, POLLIN, 0};
    const int ready = poll(&one, 1, kLongestMs);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) raise(DIST_DEADLINE_EXCEEDED, "a worker's process says nothing");
    char bytes[4096];
    const ssize_t n = read(from_, bytes, sizeof bytes);
    if (n <= 0) raise(DIST_UNKNOWN, "a worker's process has ended too early");
    buffer_.append(bytes, static_cast<std::size_t>(n));
  }
}

void WorkerProcess::tell() const { write_all(to_, "\n", 1); }

WorkerProcess::End WorkerProcess::end() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status) ? WTERMSIG(status) : 0};
}

// Finds all addresses before it releases one. Neither outgoing connections nor other tests use these
// addresses.
std::vector<std::string> free_addresses(std::size_t n) {
  const uint32_t host = 0x7F800000U | (static_cast<uint32_t>(getpid()) & 0x7FFFFFU);
  std::vector<int> sockets;
  std::vector<std::string> found;
  for (std::size_t i = 0; i < n; ++i) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(host);
    socklen_t size = sizeof address;
    sockets.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    must(sockets.back() >= 0, "socket");
    must(bind(sockets.back(), reinterpret_cast<sockaddr*>(&address), size) == 0, "bind");
    must(getsockname(sockets.back(), reinterpret_cast<sockaddr*>(&address), &size) == 0, "getsockname");
    char text[INET_ADDRSTRLEN];
    must(inet_ntop(AF_INET, &address.sin_addr, text, sizeof text) != nullptr, "inet_ntop");
    found.push_back(std::string(text) + ":" + std::to_string(ntohs(address.sin_port)));
  }
  for (const int one : sockets) close(one);
  return found;
}

}  // namespace golden

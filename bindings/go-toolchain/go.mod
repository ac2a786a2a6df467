// Go's own tool chain for the Go binding, where the system's Go is older: as a module, which Go verifies by go.sum, and by
// its checksum database on machines that go.sum does not list. See dev.
module libdist.example/toolchain

go 1.19

require golang.org/toolchain v0.0.1-go1.24.0.linux-amd64

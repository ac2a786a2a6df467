module libdist.example/bench

go 1.24

require libdist.example/dist v0.0.0

replace libdist.example/dist => ../../../../bindings/go

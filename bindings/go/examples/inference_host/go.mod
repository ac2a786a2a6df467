module libdist.example/inference_host

go 1.24

require libdist.example/dist v0.2.0

replace libdist.example/dist => ../..

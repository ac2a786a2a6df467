module libdist.example/dist

go 1.24

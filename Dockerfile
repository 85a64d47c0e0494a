# The operator's image: one static program and nothing else.
#   docker build --build-arg VERSION=v0.1.0 --tag IMAGE .
# `go run -C test/images . build operator` compiles with the same flags
# (grpcnotrace leaves gRPC's HTML templates out, which would keep 23 MB of dead code).

FROM --platform=$BUILDPLATFORM docker.io/library/golang:1.26 AS build
WORKDIR /source
# Modules are a layer of their own, which changes of the source do not touch.
COPY go.mod go.sum ./
RUN go mod download
COPY main.go ./
COPY api/ api/
COPY controllers/ controllers/
COPY internal/ internal/
ARG VERSION=dev
ARG TARGETOS
ARG TARGETARCH
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -buildvcs=false -tags grpcnotrace -ldflags "-s -w -X main.version=$VERSION" -o /manager .

FROM scratch
COPY --from=build /manager /manager
# A number, so that Kubernetes can see that it is not root.
USER 65532:65532
ENTRYPOINT ["/manager"]

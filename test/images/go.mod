module seang.org/operator/test/images

go 1.26.0

require (
	github.com/spf13/cobra v1.10.2
	pault.ag/go/debian v0.21.4
)

require (
	github.com/ProtonMail/go-crypto v1.5.2 // indirect
	github.com/cloudflare/circl v1.6.5 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/spf13/pflag v1.0.10 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	pault.ag/go/topsort v0.1.1 // indirect
)

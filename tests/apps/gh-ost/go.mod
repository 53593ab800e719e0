module gh-ost-of-the-lock

go 1.19

require github.com/github/gh-ost v1.1.6

require (
	github.com/go-ini/ini v1.62.0 // indirect
	github.com/go-mysql-org/go-mysql v1.3.0 // indirect
	github.com/go-sql-driver/mysql v1.6.0 // indirect
	github.com/gopherjs/gopherjs v1.21.0 // indirect
	github.com/jtolds/gls v4.20.0+incompatible // indirect
	github.com/openark/golib v0.0.0-20210531070646-355f37940af8 // indirect
	github.com/pingcap/errors v0.11.5-0.20201126102027-b0a155152ca3 // indirect
	github.com/satori/go.uuid v1.2.0 // indirect
	github.com/shopspring/decimal v0.0.0-20180709203117-cd690d0c9e24 // indirect
	github.com/siddontang/go v0.0.0-20180604090527-bdc77568d726 // indirect
	github.com/siddontang/go-log v0.0.0-20180807004314-8d05993dda07 // indirect
	github.com/smartystreets/assertions v1.13.1 // indirect
	go.uber.org/atomic v1.7.0 // indirect
	golang.org/x/net v0.17.0 // indirect
	golang.org/x/sys v0.23.0 // indirect
	golang.org/x/term v0.13.0 // indirect
	golang.org/x/text v0.13.0 // indirect
)

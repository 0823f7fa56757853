gtest_tests += \
	uct/sm/pin_md/pin_md_fixture.h \
	uct/sm/pin_md/test_pin_md.cc \
	uct/sm/pin_md/test_pin_md_process.cc \
	uct/sm/pin_md/test_pin_md_threads.cc \
	uct/sm/pin_md/test_pin_md_verify.cc

gtest_SOURCES += \
	../inside/pin_inside.c \
	../inside/pin_inside.h

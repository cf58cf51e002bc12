# Drivers on the kernel's own interfaces, with the kernel's own doubles behind them.

result kernel
uname -srv >&3

load() { for module in /root/$1-*.ko; do insmod "$module" $2; done; }

# An I2C bus whose two chips are memory.
load i2c
insmod /root/stub.ko chip_addr=0x68,0x20
# An SPI controller of bits on a parallel port, whose one device is given to user space instead of its own driver.
load spi
device=$(ls /sys/bus/spi/devices | head -n 1)
if [ -n "$device" ]; then
    echo spidev >"/sys/bus/spi/devices/$device/driver_override"
    echo "$device" >/sys/bus/spi/drivers/spidev/bind
fi
# What a GPIO chip behind USB needs whose other end is the test.
load gpio
result devices
ls -d /dev/i2c-* /dev/spidev* /dev/uhid >&3 2>/dev/null

chmod +x /root/interfaces
for spi in /dev/spidev*; do export ONBEAT_TEST_SPI="$spi"; done
# No line of this machine raises edges: a sonar's echo is measured on the ARM board.
/root/interfaces --test-threads 1 --nocapture --skip an_echo_is_measured >/tmp/said 2>&1
status=$?
result exit
echo $status >&3
result said
cat /tmp/said >&3

//! A running command: its arguments, the devices, what it has printed.

use std::collections::VecDeque;
use std::io;

use verbs_sys::nldev::{DeviceInfo, Nldev, NldevError, Transport};

use super::super::devices;
use super::super::document::Document;
use super::super::report::append;
use super::super::{Report, System, UserspaceDevice};
use super::Step;
use super::filter::Filters;
use super::options::Options;
use super::resource::Kind;

/// A command that has failed and has said why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Failed;

/// A word and what it stands for.
pub(super) struct Verb(
    pub(super) &'static str,
    pub(super) fn(&mut Session<'_>) -> Step,
);

/// A port of a device, or with port 0 the device and what belongs to no port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// Index of the device.
    pub(super) device: u32,
    /// Its name.
    pub(super) name: String,
    /// Number of the port.
    pub(super) port: u32,
}

impl Place {
    /// The port, when it is one.
    pub(super) fn port(&self) -> Option<u32> {
        (self.port != 0).then_some(self.port)
    }
}

type Netlink = Nldev<Box<dyn Transport>>;

/// A running command.
pub(super) struct Session<'a> {
    pub(super) system: &'a System<'a>,
    pub(super) options: &'a Options,
    pub(super) document: Document,
    pub(super) words: VecDeque<String>,
    pub(super) filters: Filters,
    /// Which objects are shown.
    pub(super) kind: Option<&'static Kind>,
    program: &'a str,
    stderr: String,
    /// The conversation and the devices, asked for when first needed.
    kernel: Option<Kernel>,
}

struct Kernel {
    nldev: Netlink,
    devices: Vec<DeviceInfo>,
}

impl<'a> Session<'a> {
    pub(super) fn new(program: &'a str, options: &'a Options, system: &'a System<'a>) -> Self {
        Self {
            system,
            options,
            document: Document::new(options.form),
            words: options.words.clone(),
            filters: Filters::default(),
            kind: None,
            program,
            stderr: String::new(),
            kernel: None,
        }
    }

    pub(super) fn finish(self) -> Report {
        Report {
            stdout: self.document.into_text(),
            stderr: self.stderr,
            code: 0,
        }
    }

    /// The next word, taken.
    pub(super) fn take(&mut self) -> Option<String> {
        self.words.pop_front()
    }

    /// Runs what the next word stands for: `default` when there is none. An
    /// unknown word is no failure, as iproute2 has it.
    pub(super) fn dispatch(
        &mut self,
        default: fn(&mut Self) -> Step,
        verbs: &[Verb],
        what: &str,
    ) -> Step {
        let Some(word) = self.words.front() else {
            return default(self);
        };
        if let Some(Verb(_, run)) = verbs.iter().find(|Verb(name, _)| name.starts_with(word)) {
            self.take();
            return run(self);
        }
        append(&mut self.stderr, format_args!("Unknown {what} '{word}'."));
        Ok(())
    }

    pub(super) fn show_help(&mut self, text: &str) -> Step {
        let text = text.replace("{}", self.program);
        self.document.line(format_args!("{}", text.trim_end()));
        Ok(())
    }

    /// Says what is wrong with the command.
    pub(super) fn refuse<T>(&mut self, text: &str) -> Result<T, Failed> {
        append(&mut self.stderr, format_args!("{text}"));
        Err(Failed)
    }

    /// Says what the kernel has against it: as the original does where it is an
    /// error number.
    pub(super) fn fail<T>(&mut self, error: &NldevError) -> Result<T, Failed> {
        if let Some(text) = error.extended() {
            let end = if text.ends_with('.') { "" } else { "." };
            append(&mut self.stderr, format_args!("Error: {text}{end}"));
        }
        match (error, error.errno()) {
            (NldevError::NoSocket(_), _) => {
                let opened = "Failed to open NETLINK_RDMA socket";
                append(&mut self.stderr, format_args!("{opened}\n{error}"));
            }
            (_, Some(errno)) => {
                let text = strerror(errno);
                append(&mut self.stderr, format_args!("error: {text}"));
            }
            _ => append(&mut self.stderr, format_args!("error: {error}")),
        }
        if error.errno() == Some(libc::EPERM) {
            append(
                &mut self.stderr,
                format_args!("changing RDMA devices needs the capability CAP_NET_ADMIN"),
            );
        }
        Err(Failed)
    }

    /// Asks the kernel.
    pub(super) fn ask<T>(
        &mut self,
        question: impl FnOnce(&mut Netlink) -> Result<T, NldevError>,
    ) -> Result<T, Failed> {
        match self.try_ask(question)? {
            Ok(answer) => Ok(answer),
            Err(error) => self.fail(&error),
        }
    }

    /// Asks the kernel; a refusal is the caller's.
    pub(super) fn try_ask<T>(
        &mut self,
        question: impl FnOnce(&mut Netlink) -> Result<T, NldevError>,
    ) -> Result<Result<T, NldevError>, Failed> {
        self.connect()?;
        match &mut self.kernel {
            Some(kernel) => Ok(question(&mut kernel.nldev)),
            None => Err(Failed),
        }
    }

    fn connect(&mut self) -> Step {
        if self.kernel.is_none() {
            let opened = self.system.nldev().and_then(|mut nldev| {
                let devices = nldev.devices()?;
                Ok(Kernel { nldev, devices })
            });
            match opened {
                Ok(kernel) if kernel.devices.iter().any(|device| device.ports.is_none()) => {
                    return self.refuse("This tool doesn't support switches yet");
                }
                Ok(kernel) => self.kernel = Some(kernel),
                Err(error) => return self.fail(&error),
            }
        }
        Ok(())
    }

    /// The kernel's devices.
    pub(super) fn devices(&mut self) -> Result<Vec<DeviceInfo>, Failed> {
        self.connect()?;
        let kernel = self.kernel.as_ref();
        Ok(kernel
            .map(|kernel| kernel.devices.clone())
            .unwrap_or_default())
    }

    fn device_named(&mut self, name: &str) -> Result<Option<DeviceInfo>, Failed> {
        Ok(self
            .devices()?
            .into_iter()
            .find(|device| device.name == name))
    }

    /// Whether the next word is the only one and a device.
    pub(super) fn only_word_is_device(&mut self) -> Result<bool, Failed> {
        match (self.words.front().cloned(), self.words.len()) {
            (Some(name), 1) => Ok(self.device_named(&name)?.is_some()),
            _ => Ok(false),
        }
    }

    /// Runs `each` for the device that the next word names, or for all.
    pub(super) fn for_devices(&mut self, each: fn(&mut Self, &Place) -> Step) -> Step {
        self.document.open_list();
        let step = self.named_or_all_devices().and_then(|devices| {
            devices.iter().try_for_each(|device| {
                let place = Place {
                    device: device.index,
                    name: device.name.clone(),
                    port: 0,
                };
                each(self, &place)
            })
        });
        self.document.close_list();
        step
    }

    fn named_or_all_devices(&mut self) -> Result<Vec<DeviceInfo>, Failed> {
        let Some(name) = self.words.front().cloned() else {
            return self.devices();
        };
        match self.device_named(&name)? {
            Some(device) => {
                self.take();
                Ok(vec![device])
            }
            None => self.refuse(&format!("Wrong device name - {name}")),
        }
    }

    /// As [`Self::for_devices`], for commands that change something.
    pub(super) fn for_named_device(&mut self, each: fn(&mut Self, &Place) -> Step) -> Step {
        if self.words.is_empty() {
            return self.refuse("Please provide device name.");
        }
        self.for_devices(each)
    }

    /// Runs `each` for the port that the next word names (`DEVICE/PORT`), or for
    /// all. `strict`: only ports are places, so a word has to name one; else
    /// port 0 stands for what belongs to no port, and a device for all of it.
    pub(super) fn for_ports(&mut self, strict: bool, each: fn(&mut Self, &Place) -> Step) -> Step {
        self.document.open_list();
        let step = self
            .named_or_all_ports(strict)
            .and_then(|places| places.iter().try_for_each(|place| each(self, place)));
        self.document.close_list();
        step
    }

    fn named_or_all_ports(&mut self, strict: bool) -> Result<Vec<Place>, Failed> {
        let Some(word) = self.words.front().cloned() else {
            let first = u32::from(strict);
            let devices = self.devices()?;
            return Ok(devices.iter().flat_map(|d| places(d, first)).collect());
        };
        let device = word
            .rsplit_once('/')
            .map_or(word.as_str(), |(name, _)| name);
        let device = self.device_named(device)?;
        let chosen = port_of(&word, strict);
        let (Some(device), Some((port, all))) = (device, chosen) else {
            return self.refuse("Wrong device name");
        };
        if port > device.ports.unwrap_or(0) {
            return self.refuse("Wrong device name");
        }
        self.take();
        let mut places: Vec<Place> = places(&device, port).collect();
        if !all {
            places.truncate(1);
        }
        Ok(places)
    }

    /// Lists everything there is: the kernel's devices with `all`, then the
    /// devices of the userspace NIC with `userspace`, then why devices of the
    /// kernel can't be used. The userspace NIC's are part of the list when the
    /// kernel has no device, and else a note on standard error.
    pub(super) fn for_all_and_userspace(
        &mut self,
        all: fn(&mut Self) -> Step,
        userspace: fn(&mut Document, &UserspaceDevice),
    ) -> Step {
        let listing = match devices::list(self.system) {
            Ok(listing) => listing,
            Err(error) => return self.refuse(&error.to_string()),
        };
        let mut notes = Report::default();
        let devices = listing.userspace(&mut notes, self.system);
        let step = if listing.is_empty() && !devices.is_empty() {
            self.document.open_list();
            devices
                .iter()
                .for_each(|device| userspace(&mut self.document, device));
            self.document.close_list();
            Ok(())
        } else {
            let mut note = Document::default();
            devices
                .iter()
                .for_each(|device| userspace(&mut note, device));
            notes.stderr.push_str(&note.into_text());
            all(self)
        };
        listing.explain(&mut notes);
        self.stderr.push_str(&notes.stderr);
        step
    }

    /// Says that a word isn't known, which is no failure, as iproute2 has it.
    pub(super) fn unknown_parameter(&mut self, word: &str) -> Step {
        append(
            &mut self.stderr,
            format_args!("Unknown parameter '{word}'."),
        );
        Ok(())
    }
}

fn places(device: &DeviceInfo, first: u32) -> impl Iterator<Item = Place> {
    let ports = first..=device.ports.unwrap_or(0);
    ports.map(|port| Place {
        device: device.index,
        name: device.name.clone(),
        port,
    })
}

/// The port of `DEVICE/PORT`, and whether it is the first of all; `None` when
/// it is none. `DEVICE/-` is what belongs to no port.
fn port_of(word: &str, strict: bool) -> Option<(u32, bool)> {
    let chosen = match word.split_once('/') {
        None | Some((_, "")) => (0, true),
        Some((_, port)) if port.starts_with('-') => (0, false),
        Some((_, port)) => {
            let digits = port.split(|c: char| !c.is_ascii_digit()).next()?;
            (digits.parse().ok().filter(|port| *port != 0)?, false)
        }
    };
    match chosen {
        (0, _) if strict => None,
        chosen => Some(chosen),
    }
}

/// The text of an error number.
pub(super) fn strerror(errno: i32) -> String {
    let text = io::Error::from_raw_os_error(errno).to_string();
    let end = format!(" (os error {errno})");
    text.strip_suffix(&end).unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_named_as_iproute2_takes_them() {
        for (word, strict, expected) in [
            ("mlx5_1", false, Some((0, true))),
            ("mlx5_1/", false, Some((0, true))),
            ("mlx5_1/1", false, Some((1, false))),
            ("mlx5_1/1x", false, Some((1, false))),
            ("mlx5_1/0", false, None),
            ("mlx5_1/-", false, Some((0, false))),
            ("mlx5_1/x", false, None),
            ("mlx5_1/99999999999", false, None),
            ("mlx5_1", true, None),
            ("mlx5_1/", true, None),
            ("mlx5_1/-", true, None),
            ("mlx5_1/2", true, Some((2, false))),
        ] {
            assert_eq!(port_of(word, strict), expected, "{word} {strict}");
        }
    }

    #[test]
    fn error_numbers_have_the_texts_of_the_c_library() {
        assert_eq!(strerror(libc::EINVAL), "Invalid argument");
        assert_eq!(strerror(libc::ENFILE), "Too many open files in system");
    }
}
